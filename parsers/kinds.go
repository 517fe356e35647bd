package parsers

import "slices"

// Kind is one kind of event: an entry of [Kinds].
type Kind struct {
	// Name is the kind's name in snake_case, the value of the field event.
	Name string
	// Doc says in one sentence what happened.
	Doc string
	// Core kinds are those that the alert rules stand on.
	Core bool
	// Quiet kinds are parsed but not shipped unless asked for: they are frequent
	// and say little.
	Quiet bool
	// Failure kinds say why a checkpoint failed: their events have failure_reason and
	// counted, where the text tells them.
	Failure bool
	// Reason is the failure_reason of an event whose text tells none.
	Reason string
	// Forms are the wordings that mean this kind, newest first.
	Forms []Form

	lesson bool           // of the table lessons
	name   []byte         // Name
	reason *failureReason // Reason
}

// Form is one wording of a kind.
type Form struct {
	// ID groups the wordings of one log statement through the versions.
	ID string
	// Versions names the first and the last version that write the form: Flink's,
	// where no other product is named. "1.5.0" names a patch release.
	Versions string
	// By lists the classes that write it. Empty: the text of an exception, which
	// stands in a trace below any header.
	By []*Class
	// Text is the message as Flink's source has it, with a {hole} for each
	// argument. A hole names the field it fills, or one of [holes]; {} is an
	// argument that is not kept; {field:words} keeps the words themselves. A final
	// dot may be missing in a line.
	Text string
	// Set gives a field a value that the wording implies: "field=value".
	Set string
}

// Kinds lists every event that a line can become. A new kind is one entry in one of
// the tables that it joins, and one golden pair in testdata.
var Kinds = slices.Concat(jobManagerKinds, taskManagerKinds, rocksDBKinds, kafkaKinds, restKinds, metricKinds, madeKinds, unrecognised)

// madeKinds are the events that an agent makes from those that it has read.
var madeKinds = []Kind{{
	Name: "checkpoint_failure_summary", Core: true,
	Doc: "One failed checkpoint in one event, made by the agent when its story is over: what it failed of, which tasks were slow, how many failed in a row.",
}, {
	Name: "checkpoint_overdue", Core: true,
	Doc: "A running job's checkpoints neither complete nor fail any more, made by the agent: for how long, and what was expected. It is told anew, at most three times, after twice the time each.",
}, {
	Name: "checkpoint_recovered", Core: true,
	Doc: "Checkpoints are not overdue any more, made by the agent: how long they were. One completed, or, where checkpoint_id is absent, the job, its JobManager or the log has ended.",
}, {
	Name: "agent_heartbeat", Core: true,
	Doc: "The agent lives, made at each tick: what it has read, sent and given up since its start, so that silence can be told from health.",
}}

// KindByName returns the kind with that name, nil for none.
func KindByName(name string) *Kind {
	for i := range Kinds {
		if Kinds[i].Name == name {
			return &Kinds[i]
		}
	}
	return nil
}

// The components: who said a line.
const (
	jobManager  = "jobmanager"
	taskManager = "taskmanager"
	rocksDB     = "rocksdb"
	kafka       = "kafka"
	rest        = "rest"
	metrics     = "metrics"
)

// Class is a class that logs under its own name.
type Class struct {
	// Component is who the class belongs to.
	Component string
	// Names are the full names that the class has had.
	Names []string
}

func class(component string, names ...string) *Class {
	return &Class{Component: component, Names: names}
}

func by(classes ...*Class) []*Class { return classes }
