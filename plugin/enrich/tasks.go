package enrich

import (
	"slices"
	"strings"
	"time"

	"flink-loki/parsers"
)

// lingering is how long lines of a task or job may come behind the line that says it is
// over.
const lingering = time.Minute

// lingers reports whether a line comes so soon behind an end that it can belong to what
// has ended.
func (p place) lingers(end place) bool {
	since := time.Duration(p.At - end.At)
	return since >= 0 && since <= lingering
}

// deployed is an attempt that was said to be DEPLOYING, and the line behind it that says
// where it goes.
type deployed struct {
	Attempt string
	At      place
	Placed  place
}

// maxDeployments bounds the attempts of one subtask that are remembered for that.
const maxDeployments = 32

// deploying takes which host an attempt goes to. Up to Flink 1.11 the line does not name
// the attempt: it is the one of this task that was said to be DEPLOYING just before, if
// there is only one: jobs can have tasks of the same name.
func (l *Log) deploying(e *parsers.Event, p place) {
	if e.Has(parsers.TaskAttemptID) {
		return // learnt already
	}
	var found *deployed
	list := l.facts.Deployed[subtaskKey(e)]
	if i := slices.IndexFunc(list, func(d deployed) bool { return d.Placed == p }); i >= 0 {
		found = &list[i] // a line that is read again
	} else if !l.isRepeated(e) {
		for i := range list {
			if d := &list[i]; d.At.before(p) && d.Placed.isZero() {
				if found != nil {
					return
				}
				found = d
			}
		}
	}
	if found == nil || !l.isWhole(found.At) {
		return
	}
	found.Placed, l.changed = p, true
	e.SetText(parsers.TaskAttemptID, []byte(found.Attempt))
	l.learnAttempt(e, p)
	l.addAttempt(e, p)
}

func subtaskKey(e *parsers.Event) string {
	return string(e.AppendValue(append([]byte(text(e, parsers.TaskName)), '#'), parsers.SubtaskIndex))
}

// taskChanged takes a task's change of state, as the JobManager or the TaskManager sees
// it.
func (l *Log) taskChanged(e *parsers.Event, p place) {
	if text(e, parsers.Component) == "taskmanager" {
		l.taskReceived(e, p)
		return
	}
	if text(e, parsers.ToState) != "DEPLOYING" || !e.Has(parsers.TaskAttemptID) || e.Has(parsers.TMID) || l.isRepeated(e) {
		return
	}
	key, id := subtaskKey(e), text(e, parsers.TaskAttemptID)
	list := l.facts.Deployed[key]
	if slices.ContainsFunc(list, func(d deployed) bool { return d.Attempt == id }) || list == nil && len(l.facts.Deployed) == maxDeployed {
		return
	}
	if l.facts.Deployed == nil {
		l.facts.Deployed = map[string][]deployed{}
	}
	list = append(list, deployed{Attempt: id, At: p})
	l.facts.Deployed[key], l.changed = list[max(0, len(list)-maxDeployments):], true
}

// taskReceived takes what a TaskManager says of one of its tasks.
func (l *Log) taskReceived(e *parsers.Event, p place) {
	a := l.learnAttempt(e, p)
	if a == nil {
		return
	}
	a.Log = l.name
	a.Began.earliest(p)
	l.state.index(a)
	switch text(e, parsers.ToState) {
	case "FINISHED", "CANCELED", "FAILED":
		a.Ended = p
	}
	l.state.touch(a)
}

// maxCandidates bounds the jobs that are listed where it is not certain which one it is.
const maxCandidates = 10

// addJob says which job an event of a TaskManager is about, only where that is certain:
// an id in the line tells, or one live attempt of the task, or there is one live job.
func (l *Log) addJob(e *parsers.Event, p place) {
	if e.Has(parsers.JobID) {
		return
	}
	if id := e.Text(parsers.AllocationID); id != nil {
		if s := find[*slot](l.state, "slot", l.cluster, id); s != nil && s.Told.notAfter(p) {
			fill(e, parsers.JobID, s.Job)
			return
		}
	}
	if !l.facts.Started.toldBy(p) || !l.isWhole(l.facts.Started) {
		return
	}
	candidates, ok := l.jobsOfTask(e, p)
	if !ok && !l.facts.Crowded {
		candidates = l.jobsAt(p)
	}
	switch slices.Sort(candidates); len(candidates) {
	case 0:
	case 1:
		fill(e, parsers.JobID, candidates[0])
	default:
		fill(e, parsers.JobCandidates, strings.Join(candidates[:min(len(candidates), maxCandidates)], ","))
	}
}

// jobsOfTask returns the jobs of the attempts that an event can be about by its task; ok
// is false where it names none, or their jobs are not known.
func (l *Log) jobsOfTask(e *parsers.Event, p place) (jobs []string, ok bool) {
	subtask, has := e.Int(parsers.SubtaskIndex)
	index := l.state.tasks[l.name]
	if !has || index == nil {
		return nil, false
	}
	number, hasNumber := e.Int(parsers.TaskAttemptNum)
	for _, a := range index.byTask[taskKey{string(e.Text(parsers.TaskName)), int(subtask)}] {
		if hasNumber && a.Number >= 0 && a.Number != int(number) || !a.Began.notAfter(p) ||
			!a.Ended.isZero() && !p.before(a.Ended) && !p.lingers(a.Ended) {
			continue
		}
		if !a.Owned.toldBy(p) {
			return nil, false
		}
		if !slices.Contains(jobs, a.Job) {
			jobs = append(jobs, a.Job)
		}
	}
	return jobs, len(jobs) > 0
}

// jobsAt returns the jobs that live on the TaskManager at a place, or did so until just
// before.
func (l *Log) jobsAt(p place) (jobs []string) {
	for _, j := range l.facts.Jobs {
		lives := j.From.notAfter(p) && (j.To.isZero() || p.before(j.To) || p.lingers(j.To))
		if lives && l.facts.Started.before(j.From) && !slices.Contains(jobs, j.ID) {
			jobs = append(jobs, j.ID)
		}
	}
	return jobs
}
