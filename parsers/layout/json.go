package layout

import (
	"bytes"
	"strconv"
	"strings"

	jsoniter "github.com/json-iterator/go"

	"flink-loki/parsers/internal/ascii"
)

// Part is a part of a line that JSON layouts, and parsers before us, keep under a key of
// its own.
type Part uint8

// The parts of a line.
const (
	NoPart    Part = iota
	Stamp          // a time as text, or a number of seconds, ms, µs or ns since 1970
	Level          // as text, or as a number of syslog
	Thread         //
	Logger         //
	Message        //
	Trace          // a stack trace as text, or its lines
	Exception      // class of an exception, where there is no trace
	Words          // words of that exception
	Wrapped        // a whole line, which a container runtime wrapped
	Output         // stdout or stderr, of such a line
	JobID          // Flink's MDC flink-job-id
	numParts
)

// parts are the names of the parts, for users who have keys of their own.
var parts = map[string]Part{
	"time": Stamp, "level": Level, "thread": Thread, "logger": Logger, "message": Message, "trace": Trace,
}

// PartNames are the names that [Keys.Add] takes.
var PartNames = []string{"time", "level", "thread", "logger", "message", "trace"}

// Keys says which keys hold which parts. The path of a key in an object within an
// object is joined by dots.
type Keys struct {
	parts map[string]Part
	roots map[string]bool // paths of objects that have such keys
}

// DefaultKeys returns the keys of the layouts that are in use: log4j 2's
// JsonTemplateLayout (ECS, Logstash, GELF) and JsonLayout, logback's LogstashEncoder,
// Amazon's Managed Service for Apache Flink, Docker's json-file.
func DefaultKeys() *Keys {
	k := &Keys{parts: map[string]Part{}, roots: map[string]bool{"thrown": true}}
	for part, paths := range map[Part]string{
		Stamp:   "@timestamp timestamp time timeMillis datetime date ts instant eventTime",
		Level:   "level log.level severity messageType levelname loglevel log_level",
		Thread:  "thread thread_name threadName process.thread.name _thread",
		Logger:  "logger logger_name loggerName log.logger _logger",
		Message: "message msg short_message @message",
		Trace: "stack_trace stackTrace stacktrace exception exception.stacktrace throwableInformation throwable " +
			"error.stack_trace full_message thrown.extendedStackTrace",
		Exception: "thrown.name error.type exception.exception_class",
		Words:     "thrown.message error.message exception.exception_message",
		Wrapped:   "log",
		Output:    "stream",
	} {
		for path := range strings.FieldsSeq(paths) {
			k.add(path, part)
		}
	}
	for _, parent := range []string{"", "_", "mdc.", "MDC.", "contextMap.", "context.", "labels.", "properties."} {
		k.add(parent+jobKey, JobID)
	}
	return k
}

func (k *Keys) add(path string, part Part) {
	k.parts[path] = part
	for i := range path {
		if path[i] == '.' {
			k.roots[path[:i]] = true
		}
	}
}

// Add adds the path of a key of the user's for a part; ok is false for a name that is
// none of [PartNames].
func (k *Keys) Add(name, path string) (ok bool) {
	part, ok := parts[name]
	if ok {
		k.add(path, part)
	}
	return ok
}

// Part returns what stands under a path, [NoPart] for nothing that is read.
func (k *Keys) Part(path []byte) Part { return k.parts[string(path)] }

// Holds reports whether something in the object under a path is read.
func (k *Keys) Holds(path []byte) bool { return k.roots[string(path)] }

// Object is a JSON object, or any record, taken apart by [Keys].
type Object struct {
	parts [numParts][]byte
	cause []byte // class and words of causes, as lines of a trace
}

// Set sets a part, unless it is set; an empty value sets nothing.
func (o *Object) Set(part Part, value []byte) {
	if o.parts[part] == nil && len(value) > 0 {
		o.parts[part] = value
	}
}

// Reset empties the object.
func (o *Object) Reset() { *o = Object{} }

// IsLine reports whether the object is a line that was taken apart.
func (o *Object) IsLine() bool {
	return o.parts[Message] != nil && (o.parts[Logger] != nil || o.parts[Level] != nil)
}

// Line returns the object as a line; ok is false where it is none.
func (o *Object) Line() (l Line, ok bool) {
	if !o.IsLine() {
		return l, false
	}
	l = Line{Stamp: o.parts[Stamp], Level: jsonLevel(o.parts[Level]), Thread: o.parts[Thread], Logger: o.parts[Logger],
		JobID: o.parts[JobID], cut: true}
	if !ascii.IsID(l.JobID) {
		l.JobID = nil
	}
	var more bool
	l.rest, l.Below, more = bytes.Cut(o.parts[Message], []byte("\n"))
	if trace := o.trace(); trace != nil {
		if more {
			l.Below = append(append(bytes.Clone(l.Below), '\n'), trace...)
		} else {
			l.Below = trace
		}
	}
	return l, true
}

// trace returns the stack trace, nil for none.
func (o *Object) trace() []byte {
	if trace := bytes.TrimSpace(o.parts[Trace]); len(trace) > 0 {
		return trace
	}
	if o.parts[Exception] == nil {
		return nil
	}
	trace := bytes.Clone(o.parts[Exception])
	if words := o.parts[Words]; words != nil {
		trace = append(append(trace, ": "...), words...)
	}
	return append(trace, o.cause...)
}

// Wrapped returns the line that a container runtime wrapped into the object, without
// its newline; ok is false where there is none.
func (o *Object) Wrapped(w *Wrapper) (inner []byte, ok bool) {
	inner = o.parts[Wrapped]
	if inner == nil || o.parts[Message] != nil {
		return nil, false
	}
	if o.parts[Stamp] != nil {
		w.Stamp = o.parts[Stamp]
	}
	if o.parts[Output] != nil {
		w.Output = o.parts[Output]
		w.Partial = !bytes.HasSuffix(inner, []byte("\n"))
	}
	return bytes.TrimSuffix(inner, []byte("\n")), true
}

// jsonLevel reads a level in any case, and GELF's, which are those of syslog.
func jsonLevel(level []byte) []byte {
	if len(level) == 1 && '2' <= level[0] && level[0] <= '7' {
		return []byte([...]string{"FATAL", "ERROR", "WARN", "INFO", "INFO", "DEBUG"}[level[0]-'2'])
	}
	if upper := bytes.ToUpper(level); string(upper) == "WARNING" {
		return []byte("WARN")
	} else if isLevel(upper) {
		return upper
	}
	return level
}

// ReadObject reads a JSON object; ok is false where the text is none. What follows the
// object is not read.
func (k *Keys) ReadObject(text []byte, o *Object) (ok bool) {
	iter := jsoniter.ConfigDefault.BorrowIterator(text)
	defer jsoniter.ConfigDefault.ReturnIterator(iter)
	if iter.WhatIsNext() != jsoniter.ObjectValue {
		return false
	}
	k.readObject(iter, "", o)
	return iter.Error == nil
}

// ReadValue reads the JSON value under a key of an object.
func (k *Keys) ReadValue(key string, value []byte, o *Object) {
	iter := jsoniter.ConfigDefault.BorrowIterator(value)
	defer jsoniter.ConfigDefault.ReturnIterator(iter)
	k.readValue(iter, key, o)
}

func (k *Keys) readObject(iter *jsoniter.Iterator, path string, o *Object) {
	iter.ReadMapCB(func(iter *jsoniter.Iterator, key string) bool {
		if path != "" {
			key = path + "." + key
		}
		k.readValue(iter, key, o)
		return iter.Error == nil
	})
}

func (k *Keys) readValue(iter *jsoniter.Iterator, key string, o *Object) {
	switch part := k.parts[key]; iter.WhatIsNext() {
	case jsoniter.ObjectValue:
		switch {
		case part == Stamp:
			o.Set(Stamp, readInstant(iter))
		case key == "thrown.cause":
			o.readCause(iter)
		case k.roots[key]:
			k.readObject(iter, key, o)
		default:
			iter.Skip()
		}
	case jsoniter.StringValue:
		if part == NoPart {
			iter.Skip()
		} else {
			o.Set(part, []byte(iter.ReadString()))
		}
	case jsoniter.NumberValue:
		switch number := iter.ReadNumber(); part {
		case Stamp:
			o.Set(Stamp, epochStamp(string(number)))
		case Level:
			o.Set(Level, []byte(number))
		}
	case jsoniter.ArrayValue:
		if part == Trace {
			o.Set(Trace, readLines(iter))
		} else {
			iter.Skip()
		}
	default:
		iter.Skip()
	}
}

// readLines reads an array of texts as lines.
func readLines(iter *jsoniter.Iterator) []byte {
	var lines []byte
	iter.ReadArrayCB(func(iter *jsoniter.Iterator) bool {
		if iter.WhatIsNext() == jsoniter.StringValue {
			lines = append(append(lines, iter.ReadString()...), '\n')
		} else {
			iter.Skip()
		}
		return iter.Error == nil
	})
	return lines
}

// readCause reads what log4j 2's JsonLayout tells of a cause: its class, its words, and
// its own cause.
func (o *Object) readCause(iter *jsoniter.Iterator) {
	var cause struct {
		Name, Message string
		Cause         jsoniter.RawMessage
	}
	iter.ReadVal(&cause)
	for depth := 0; cause.Name != "" && depth < maxCauses; depth++ {
		o.cause = append(append(append(append(o.cause, "\nCaused by: "...), cause.Name...), ": "...), cause.Message...)
		next := cause.Cause
		cause.Name, cause.Message, cause.Cause = "", "", nil
		if jsoniter.Unmarshal(next, &cause) != nil {
			break
		}
	}
}

// maxCauses bounds the causes of one exception.
const maxCauses = 32

// readInstant reads the time of log4j 2's JsonLayout.
func readInstant(iter *jsoniter.Iterator) []byte {
	var instant struct {
		EpochSecond, NanoOfSecond int64
	}
	iter.ReadVal(&instant)
	return appendStamp(instant.EpochSecond, instant.NanoOfSecond)
}

// epochStamp returns the time that a number means: seconds since 1970, with decimals,
// or ms, µs or ns, told by its size.
func epochStamp(number string) []byte {
	if strings.ContainsAny(number, "eE") { // such as 1.795958442924E9
		f, _ := strconv.ParseFloat(number, 64)
		number = strconv.FormatFloat(f, 'f', -1, 64)
	}
	whole, decimals, _ := strings.Cut(number, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return nil
	}
	nanos, _ := strconv.ParseInt((decimals + "000000000")[:9], 10, 64)
	switch {
	case n < 1e11:
		return appendStamp(n, nanos)
	case n < 1e14:
		return appendStamp(n/1e3, n%1e3*1e6)
	case n < 1e17:
		return appendStamp(n/1e6, n%1e6*1e3)
	}
	return appendStamp(n/1e9, n%1e9)
}
