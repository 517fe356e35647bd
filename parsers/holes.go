package parsers

import (
	"bytes"
	"strconv"

	"flink-loki/parsers/internal/ascii"
)

// hole is what may stand between braces in a template: how far it reaches and what
// it does with the text it covers.
type hole struct {
	// scan returns the length of the value that s starts with, 0 when there is none.
	// A nil scan makes a free text, which reaches to the next literal.
	scan func(s []byte) int
	// fill stores the text v. It never fails: what it can't read stays absent.
	fill func(e *Event, v []byte)
	// valid says whether a free text can be what it stands for, so that a literal in its
	// middle does not end it. nil: anything can.
	valid func(v []byte) bool
	// last makes a free text end at the last literal that fits instead of the first: a
	// task's name can hold Flink's own sentences, what follows it can't.
	last bool
}

// holes are the holes that read more, or other, than the one field of their name. Any
// other hole has the name of a field and is read as the field's type says.
var holes = map[string]hole{
	"":                      {},
	"task":                  {fill: fillTask, valid: isTask, last: true},
	"task_location":         {fill: fillTaskLocation},
	"bare_host":             {fill: func(e *Event, v []byte) { e.SetText(Host, v) }, valid: isHost},
	"slot":                  {fill: fillSlot},
	"resource":              {fill: fillResource},
	"checkpoint_type":       {fill: fillCheckpointType},
	"channel":               {fill: fillChannel, valid: isChannel},
	"number":                {scan: scanInt},
	"location":              {fill: fillLocation},
	"storage":               {fill: fillStorage},
	"snapshot_directory":    {fill: fillSnapshotDirectory},
	"snapshot_thread":       {fill: fillSnapshotThread},
	"exception":             {fill: fillException},
	"seconds":               {scan: scanInt, fill: fillSeconds},
	"microseconds":          {scan: scanInt, fill: fillMicroseconds},
	"checkpoint_statistics": {fill: fillStatistics},
	"kafka_client":          {fill: fillKafkaClient},
	"kafka_node":            {fill: fillKafkaNode},
	"flush_started":         eventLogHole("flush_started"),
	"flush_finished":        eventLogHole("flush_finished"),
	"compaction_started":    eventLogHole("compaction_started"),
	"compaction_finished":   eventLogHole("compaction_finished"),
}

// holeFor returns the hole for one field.
func holeFor(f Field) hole {
	switch Fields[f].Type {
	case ID:
		return hole{scan: scanID, fill: func(e *Event, v []byte) { setID(e, f, v) }}
	case AttemptID:
		return hole{scan: scanAttemptID, fill: func(e *Event, v []byte) { setAttemptID(e, f, v) }}
	case Int:
		return hole{scan: scanInt, fill: func(e *Event, v []byte) { setInt(e, f, v) }}
	case Number:
		return hole{scan: scanNumber, fill: func(e *Event, v []byte) { setNumber(e, f, v) }}
	case Bool:
		return hole{scan: scanWord, fill: func(e *Event, v []byte) { setBool(e, f, v) }}
	case Word:
		return hole{scan: scanWord, fill: func(e *Event, v []byte) { e.SetText(f, v) }}
	}
	return hole{fill: func(e *Event, v []byte) { e.SetText(f, v) }}
}

// Values with a shape of their own.

func scanID(s []byte) int {
	if len(s) < ascii.IDLen || ascii.Span(s[:ascii.IDLen], ascii.IsHex) < ascii.IDLen || len(s) > ascii.IDLen && ascii.IsHex(s[ascii.IDLen]) {
		return 0
	}
	return ascii.IDLen
}

// scanAttemptID accepts 9f8e…(32), and since Flink 1.16 <32>_<32>_<subtask>_<attempt>.
func scanAttemptID(s []byte) int {
	n := scanID(s)
	if n == 0 || len(s) < n+1+ascii.IDLen || s[n] != '_' || scanID(s[n+1:]) == 0 {
		return n
	}
	end := n + 1 + ascii.IDLen
	for range 2 {
		digits := 0
		if end < len(s) && s[end] == '_' {
			digits = ascii.Span(s[end+1:], ascii.IsDigit)
		}
		if digits == 0 {
			return n
		}
		end += 1 + digits
	}
	return end
}

// scanInt accepts a number, and what stands in place of one: a word in capitals
// (UNKNOWN_CHECKPOINT_ID, Kafka's INITIAL) or a placeholder that was never filled.
func scanInt(s []byte) int {
	if bytes.HasPrefix(s, []byte("{}")) {
		return 2
	}
	sign := 0
	if len(s) > 1 && s[0] == '-' {
		sign = 1
	}
	if n := ascii.Span(s[sign:], ascii.IsDigit); n > 0 {
		return sign + n
	}
	if n := ascii.Span(s, func(c byte) bool { return 'A' <= c && c <= 'Z' || c == '_' }); n > 2 {
		return n
	}
	return 0
}

func scanNumber(s []byte) int {
	n := scanInt(s)
	if n > 0 && n+1 < len(s) && s[n] == '.' && ascii.IsDigit(s[n-1]) {
		if d := ascii.Span(s[n+1:], ascii.IsDigit); d > 0 {
			n += 1 + d
		}
	}
	return n
}

func scanWord(s []byte) int {
	return ascii.Span(s, func(c byte) bool { return ascii.IsAlpha(c) || ascii.IsDigit(c) || c == '_' })
}

func setID(e *Event, f Field, v []byte) {
	if scanID(v) == len(v) {
		e.SetText(f, v)
	}
}

func setAttemptID(e *Event, f Field, v []byte) {
	if scanAttemptID(v) == len(v) {
		e.SetText(f, v)
	}
}

func setInt(e *Event, f Field, v []byte) {
	if n, ok := ascii.Int(v); ok {
		e.SetInt(f, n)
	}
}

func setNumber(e *Event, f Field, v []byte) {
	if n, ok := ascii.Int(v); ok {
		e.SetNumber(f, float64(n))
	} else if n, err := strconv.ParseFloat(string(v), 64); err == nil && n >= 0 {
		e.SetNumber(f, n)
	}
}

func setBool(e *Event, f Field, v []byte) {
	switch string(v) {
	case "true":
		e.SetBool(f, true)
	case "false":
		e.SetBool(f, false)
	}
}

// Values that are made of several.

// fillTask reads "NAME (i/n)", as the JobManager prints a task, "NAME (i/n)#attempt",
// as the TaskManager does since Flink 1.12, and either with " (execution attempt id)"
// behind it. The name is the user's and may hold any of this: the last one counts.
func fillTask(e *Event, v []byte) {
	v, attempt := cutAttempt(bytes.TrimSpace(v))
	if attempt != nil {
		e.SetText(TaskAttemptID, attempt)
	}
	name, subtask, ok := cutSubtask(v)
	if ok {
		subtask.fill(e)
	}
	e.SetText(TaskName, name)
}

func isTask(v []byte) bool {
	v, _ = cutAttempt(bytes.TrimSpace(v))
	_, _, ok := cutSubtask(v)
	return ok
}

// cutAttempt cuts " (execution attempt id)" off the end of a task.
func cutAttempt(v []byte) (task, id []byte) {
	open := lastParenthesis(v)
	if open < 1 || v[len(v)-1] != ')' {
		return v, nil
	}
	if id = v[open+1 : len(v)-1]; len(id) < ascii.IDLen || scanAttemptID(id) != len(id) {
		return v, nil
	}
	return bytes.TrimSpace(v[:open]), id
}

// lastParenthesis returns where the last opening parenthesis stands, -1 where there is
// none in what an attempt id can take.
func lastParenthesis(v []byte) int {
	const far = 128
	start := max(len(v)-far, 0)
	if i := bytes.LastIndexByte(v[start:], '('); i >= 0 {
		return start + i
	}
	return -1
}

// subtask is the "(i/n)#attempt" behind a task's name.
type subtask struct {
	index, parallelism, attempt int64 // attempt is -1 where it is not printed
}

func (s subtask) fill(e *Event) {
	e.SetInt(SubtaskIndex, s.index)
	e.SetInt(Parallelism, s.parallelism)
	if s.attempt >= 0 {
		e.SetInt(TaskAttemptNum, s.attempt)
	}
}

// cutSubtask cuts " (i/n)#attempt" off the end of a task's name. The i in a text
// counts from 1.
func cutSubtask(v []byte) (name []byte, s subtask, ok bool) {
	s.attempt = -1
	rest := v
	i := len(rest)
	for i > 0 && ascii.IsDigit(rest[i-1]) {
		i--
	}
	if n, ok := ascii.Int(rest[i:]); ok && i > 1 && rest[i-1] == '#' && rest[i-2] == ')' {
		s.attempt = n
		rest = rest[:i-1]
	}
	open := lastParenthesis(rest)
	if open < 0 || rest[len(rest)-1] != ')' {
		return v, s, false
	}
	left, n, slash := bytes.Cut(bytes.TrimSpace(rest[open+1:len(rest)-1]), []byte("/"))
	index, ok1 := ascii.Int(left)
	parallelism, ok2 := ascii.Int(n)
	if !slash || !ok1 || !ok2 || index < 1 || index > parallelism {
		return v, s, false
	}
	s.index, s.parallelism = index-1, parallelism
	return bytes.TrimSpace(rest[:open]), s, true
}

// isHost reports whether a text can be a host's name or address and nothing more.
func isHost(v []byte) bool {
	return len(v) > 0 && ascii.Span(v, func(c byte) bool {
		return ascii.IsAlpha(c) || ascii.IsDigit(c) || c == '.' || c == '-' || c == '_' || c == ':'
	}) == len(v)
}

// fillTaskLocation reads Flink's TaskManagerLocation, "<resource id> @ <host>
// (dataPort=<port>)". What stands there when the place is not known ("Unknown
// location", "[unassigned resource]", "not deployed", a slot object) fills nothing.
func fillTaskLocation(e *Event, v []byte) {
	at := bytes.LastIndex(v, []byte(" @ "))
	if at < 0 {
		return
	}
	e.SetText(TMID, bytes.TrimSpace(v[:at]))
	host, port, _ := bytes.Cut(v[at+3:], []byte(" ("))
	port, ok1 := bytes.CutPrefix(ascii.TrimLeft(port), []byte("dataPort="))
	port, ok2 := bytes.CutSuffix(port, []byte(")"))
	if ok1 && ok2 {
		setInt(e, DataPort, ascii.TrimRight(port))
	}
	if bytes.IndexByte(host, ' ') < 0 {
		e.SetText(Host, host)
	}
}

// fillSlot reads a YARN slot "container_e24_…_013155_1": the container and a number.
func fillSlot(e *Event, v []byte) {
	if i := bytes.LastIndexByte(v, '_'); i > 0 && bytes.HasPrefix(v, []byte("container_")) {
		v = v[:i]
	}
	e.SetText(TMID, v)
}

// fillResource reads a resource id, which may have "(host:port)" behind it.
func fillResource(e *Event, v []byte) {
	if i := bytes.LastIndexByte(v, '('); i > 0 && v[len(v)-1] == ')' {
		v = v[:i]
	}
	e.SetText(TMID, bytes.TrimSpace(v))
}

// fillCheckpointType reads CHECKPOINT, SAVEPOINT, SAVEPOINT_SUSPEND and others, and
// the form of Flink 1.15 and later, SavepointType{name='Suspend Savepoint', …}.
func fillCheckpointType(e *Event, v []byte) {
	if _, rest, ok := bytes.Cut(v, []byte("{name='")); ok {
		v, _, _ = bytes.Cut(rest, []byte("'"))
	}
	e.SetText(CheckpointType, bytes.TrimSpace(v))
}

// isSavepoint tells savepoints by their type, as any version prints it.
func isSavepoint(checkpointType []byte) bool {
	return bytes.Contains(bytes.ToUpper(checkpointType), []byte("SAVEPOINT"))
}

// fillChannel reads "5", and since Flink 1.11 "InputChannelInfo{gateIdx=0,
// inputChannelIdx=5}".
func fillChannel(e *Event, v []byte) {
	if _, rest, ok := bytes.Cut(v, []byte("{gateIdx=")); ok {
		gate, channel, _ := bytes.Cut(rest, []byte(", inputChannelIdx="))
		setInt(e, Gate, gate)
		v = bytes.TrimSuffix(channel, []byte("}"))
	}
	setInt(e, Channel, v)
}

func isChannel(v []byte) bool {
	return len(v) > 0 && (ascii.Span(v, ascii.IsDigit) == len(v) || bytes.HasPrefix(v, []byte("InputChannelInfo{")) && bytes.IndexByte(v, '}') == len(v)-1)
}

// fillLocation reads a path; "<checkpoint-not-externally-addressable>" is none.
func fillLocation(e *Event, v []byte) {
	if !bytes.HasPrefix(v, []byte("<")) {
		e.SetText(Location, v)
		fillPathIDs(e, v)
	}
}

// fillStorage reads the target of a snapshot, of which only the directory is kept:
// FsCheckpointStorageLocation {…, checkpointDirectory=hdfs://…/<job>/chk-17, …}.
func fillStorage(e *Event, v []byte) {
	_, rest, ok := bytes.Cut(v, []byte("checkpointDirectory="))
	if !ok {
		return
	}
	dir, _, _ := bytes.Cut(rest, []byte(", "))
	fillLocation(e, bytes.TrimRight(dir, "})"))
}

// fillSnapshotDirectory reads the directory of a RocksDB snapshot.
func fillSnapshotDirectory(e *Event, v []byte) { fillLocation(e, v) }

// fillPathIDs takes the ids that Flink's directories spell, where the event does not
// have them already:
//
//	…/<job id>/chk-<checkpoint id>
//	…/job_<job id>_op_<operator>_<operator id>__<i>_<n>__uuid_<uuid>/…
func fillPathIDs(e *Event, path []byte) {
	if i := bytes.LastIndex(path, []byte("/chk-")); i >= 0 {
		id := path[i+len("/chk-"):]
		if !e.Has(CheckpointID) {
			setInt(e, CheckpointID, id[:ascii.Span(id, ascii.IsDigit)])
		}
		if !e.Has(JobID) && i >= ascii.IDLen && (i == ascii.IDLen || path[i-ascii.IDLen-1] == '/') {
			setID(e, JobID, path[i-ascii.IDLen:i])
		}
	}
	fillDatabaseIDs(e, path)
}

// fillDatabaseIDs takes the ids that the directory of a RocksDB database spells. A LOG
// that Flink moves beside its own log (1.15 and later) is named by the same path with
// underscores in place of slashes.
func fillDatabaseIDs(e *Event, path []byte) {
	var db []byte
	for rest := path; ; {
		_, after, ok := bytes.Cut(rest, []byte("job_"))
		if !ok {
			return
		}
		if db, _, ok = bytes.Cut(after, []byte("__uuid_")); !ok {
			return
		}
		if scanID(after) > 0 && bytes.HasPrefix(db[ascii.IDLen:], []byte("_op_")) {
			break
		}
		rest = after
	}
	if !e.Has(JobID) {
		setID(e, JobID, db[:ascii.IDLen])
	}
	operator := db[ascii.IDLen+len("_op_"):]
	i := bytes.LastIndex(operator, []byte("__"))
	if i < ascii.IDLen+1 || operator[i-ascii.IDLen-1] != '_' {
		return
	}
	setID(e, OperatorID, operator[i-ascii.IDLen:i])
	e.SetText(OperatorName, operator[:i-ascii.IDLen-1])
	index, parallelism, _ := bytes.Cut(operator[i+2:], []byte("_"))
	if n, ok := ascii.Int(index); ok && n > 0 {
		e.SetInt(SubtaskIndex, n-1)
		setInt(e, Parallelism, parallelism)
	}
}

// fillSnapshotThread reads a thread as Java prints it, "Thread[NAME,5,GROUP]", since
// Java 21 "Thread[#12,NAME,5,GROUP]". A task's thread has the task's name, with
// "Async calls on " before it for its helper; a pool's thread names no task.
func fillSnapshotThread(e *Event, v []byte) {
	name, ok := bytes.CutPrefix(v, []byte("Thread["))
	if !ok {
		return
	}
	if len(name) > 0 && name[0] == '#' {
		if _, rest, ok := bytes.Cut(name, []byte(",")); ok {
			name = rest
		}
	}
	for range 2 { // the group, then the priority
		if i := bytes.LastIndexByte(name, ','); i > 0 {
			name = name[:i]
		}
	}
	fillThreadTask(e, name)
}

// fillThreadTask takes the task from a thread's name, where it has one.
func fillThreadTask(e *Event, thread []byte) {
	thread = bytes.TrimPrefix(thread, []byte("Async calls on "))
	if name, subtask, ok := cutSubtask(thread); ok {
		e.SetText(TaskName, name)
		subtask.fill(e)
	}
}

// fillException reads "package.Class: words", with either part missing. A "{}" was not
// filled by the logging framework: the exception stands below the line.
func fillException(e *Event, v []byte) {
	if string(v) == "{}" {
		return
	}
	class, words := cutException(v)
	e.SetText(ExceptionClass, class)
	e.SetText(Reason, words)
}

func fillSeconds(e *Event, v []byte) {
	if n, ok := ascii.Int(v); ok {
		e.SetNumber(DurationMs, float64(n)*1000)
	}
}

// fillKafkaClient reads the prefix of a Kafka client's lines, "[Consumer
// clientId=c, groupId=g] ", which may have instanceId before it.
func fillKafkaClient(e *Event, v []byte) {
	v = bytes.TrimSuffix(bytes.TrimSpace(v), []byte("]"))
	_, client, ok := bytes.Cut(v, []byte("clientId="))
	if !ok {
		return
	}
	client, group, _ := bytes.Cut(client, []byte(", groupId="))
	e.SetText(ClientID, client)
	if string(group) != "null" {
		e.SetText(GroupID, group)
	}
}

// fillKafkaNode reads "host:9092 (id: 2 rack: null)".
func fillKafkaNode(e *Event, v []byte) {
	if _, id, ok := bytes.Cut(v, []byte("(id: ")); ok {
		setInt(e, KafkaNodeID, id[:ascii.Span(id, ascii.IsDigit)])
	}
}
