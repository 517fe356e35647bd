package parsers

import (
	"bytes"
	"time"

	"flink-loki/parsers/internal/ascii"
	"flink-loki/parsers/layout"
)

// stream joins the lines of one output into events: a header, and below it its trace.
type stream struct {
	source *Source
	// What tells the stream from others in the same file.
	container, pod, output []byte

	partial        []byte // of a line that is not whole yet
	partialOrigin  Origin
	partialWrapper layout.Wrapper

	begun     bool   // a header was read
	open      bool   // and lines without one are its trace
	inReport  bool   // and they are metrics
	skipped   []byte // the header's line, where it was not taken apart
	origin    Origin
	record    int    // of the header
	stamp     []byte // of its wrapper
	header    layout.Line
	message   []byte // of the header, where it is cut
	event     Event  // of the header; its Kind is nil where the header is no event
	trace     trace
	reason    *failureReason // the first that the trace names
	threshold exception      // in the trace; its class is nil where there is none
	sentence  sentence       // where it stands

	emittedOf int // record of the last event that was emitted
	parts     int // how many events of it were emitted
}

// sentence is where a sentence stands.
type sentence struct {
	offset int64
	record int
}

// maxPartial bounds a line that comes in parts; what is longer is cut.
const maxPartial = 1 << 20

// join adds a part to a line that comes in parts, and reads it when it is whole.
func (s *stream) join(origin *Origin, w *layout.Wrapper, text []byte) {
	if len(s.partial) == 0 {
		s.partialOrigin, s.partialWrapper = *origin, w.Clone()
	}
	s.partial = append(s.partial, text[:min(len(text), maxPartial-len(s.partial))]...)
	if !w.Partial {
		s.whole()
	}
}

// whole reads a line that came in parts.
func (s *stream) whole() {
	text := s.partial
	s.partial = nil // the event has its memory
	s.partialWrapper.Partial = false
	s.source.unwrap(&s.partialOrigin, s.partialWrapper, text)
}

// end reads what is left of a line whose end never came, and emits what is held back.
func (s *stream) end() {
	if len(s.partial) > 0 {
		s.whole()
	}
	s.flush()
}

// text reads a line in any layout.
func (s *stream) text(origin *Origin, w *layout.Wrapper, text []byte) {
	l, ok := s.parse(text)
	if plain, isOdd := layout.PlainBlanks(text); !ok && isOdd {
		l, ok = s.parse(plain)
	}
	if ok {
		s.begin(origin, w, &l)
	} else {
		s.below(origin, text)
	}
}

// parse takes a header apart, in any layout.
func (s *stream) parse(text []byte) (layout.Line, bool) {
	if l, ok := layout.Shipped(text); ok {
		return l, true
	}
	return layout.Parse(text, s.source.parser.table.classes.isKnown)
}

// object reads a line that is a JSON object: that of a layout, or an answer of Flink's
// REST API.
func (s *stream) object(origin *Origin, w *layout.Wrapper, text []byte) {
	if l, ok := s.source.object.Line(); ok {
		s.begin(origin, w, &l)
		return
	}
	s.flush()
	s.origin, s.record, s.stamp, s.header, s.message = *origin, s.source.records, w.Stamp, layout.Line{}, nil
	s.source.parser.table.restEvents(text, origin.URL, &s.event, func(e *Event) {
		s.judge(e)
		s.deliver(e)
	})
	s.event.Kind = nil
}

// skip passes over a header that is no event. What stands in the trace below it can be
// one.
func (s *stream) skip(origin *Origin, line []byte) {
	if s.event.Kind != nil || s.threshold.class != nil {
		s.flush()
	}
	s.begun, s.open, s.inReport, s.skipped = true, true, false, line
	if s.record != s.source.records {
		s.origin, s.record = *origin, s.source.records
	}
	if s.trace.class != nil {
		s.trace = trace{}
	}
}

// begin reads a header.
func (s *stream) begin(origin *Origin, w *layout.Wrapper, l *layout.Line) {
	if s.event.Kind != nil || s.threshold.class != nil {
		s.flush()
	}
	s.begun, s.open, s.inReport, s.skipped = true, true, false, nil
	s.header, s.origin, s.record, s.stamp = *l, *origin, s.source.records, w.Stamp
	s.message, s.trace, s.reason = nil, trace{}, nil
	if forms := s.source.parser.table.formsOf(&s.header); forms != nil {
		s.read(forms)
	}
	if l.Below != nil { // and nothing else
		for line := range bytes.SplitSeq(l.Below, []byte("\n")) {
			s.below(origin, line)
		}
		s.flush()
	}
}

// read finds the form of the header's message.
func (s *stream) read(forms *classForms) {
	s.inReport = forms.report
	s.message = s.header.Message()
	if layout.HasColours(s.message) {
		s.message = layout.Clean(s.message)
	}
	s.event.Reset()
	switch {
	case forms.forms.match(s.message, &s.event):
		if s.header.RocksDB && s.source.flushed.repeats(&s.event, s.header.Thread, s.source.Continues) {
			s.event.Kind = nil
			return
		}
	case forms.lessons.match(s.message, &s.event):
		s.pass(s.source.Lesson)
		return
	case len(s.message) == 0 || !forms.known || forms.silent.match(s.message):
		s.event.Kind = nil
		return
	case forms.forms.matchDamaged(s.message, &s.event):
	default:
		s.event.Reset()
		s.event.Kind = s.source.parser.table.unrecognised
		s.pass(s.source.Unrecognised)
		return
	}
	if forms.component != nil {
		s.event.SetText(Component, forms.component)
	}
	s.learn(s.event.Text(Reason))
}

// pass hands a line that is no event to whoever wants it.
func (s *stream) pass(to func(*Event)) {
	if to != nil {
		s.addHeader(&s.event)
		to(&s.event)
	}
	s.event.Kind = nil
}

// below reads a line without a header: of the trace below the open one.
func (s *stream) below(origin *Origin, line []byte) {
	switch {
	case s.header.RocksDB && s.skipped == nil: // which writes no traces, but pages of statistics
		return
	case s.inReport:
		s.metric(origin, line)
		return
	case !s.open:
		s.orphan(origin, line)
		return
	}
	ex, ok := s.trace.add(line)
	if !ok {
		return
	}
	if s.event.Kind != nil {
		s.learn(ex.words)
		if s.reason == nil {
			s.reason = findReason(cutReason(ex.words))
		}
	}
	if s.threshold.class == nil && s.source.parser.table.inTrace.match(ex.words, &s.source.scratch) {
		s.threshold, s.sentence = ex, sentence{origin.Offset, s.source.records}
	}
}

// metric reads a line of a report.
func (s *stream) metric(origin *Origin, line []byte) {
	s.origin, s.record, s.message = *origin, s.source.records, ascii.TrimRight(line)
	s.source.report.line(line, &s.event, s.deliver)
	s.event.Kind = nil
}

// orphan reads a line whose header came before, in another chunk. A metric is an event
// without it, and the sentence that matters of a trace.
func (s *stream) orphan(origin *Origin, line []byte) {
	if s.source.Continues && !s.begun && hasScope(line) {
		s.metric(origin, line)
		return
	}
	var t trace
	ex, ok := t.add(line)
	if !ok || !s.source.parser.table.inTrace.match(ex.words, &s.source.scratch) {
		return
	}
	s.open, s.skipped, s.threshold, s.sentence = true, nil, ex, sentence{origin.Offset, s.source.records}
	s.origin, s.record, s.stamp, s.header = *origin, s.source.records, nil, layout.Line{}
	s.message, s.trace, s.reason = ascii.TrimRight(line), t, nil
}

// learn takes what the words of a reason or an exception tell besides.
func (s *stream) learn(words []byte) {
	scratch := &s.source.scratch
	scratch.Reset()
	if !s.source.parser.table.causes.match(words, scratch) {
		return
	}
	id, ok := s.event.Int(CheckpointID)
	if other, has := scratch.Int(CheckpointID); ok && has && id != other {
		return
	}
	scratch.Drop(Reason)
	s.event.addFrom(scratch)
}

// flush emits what is held back.
func (s *stream) flush() {
	e := &s.event
	if e.Kind != nil {
		if !e.Has(ExceptionClass) {
			e.SetText(ExceptionClass, s.trace.class)
		}
		if !e.Has(Reason) {
			e.SetText(Reason, s.trace.words)
		}
		e.SetText(RootCauseClass, s.trace.root)
		e.SetText(Reason, cutReason(e.Text(Reason)))
		s.judge(e)
		s.deliver(e)
	}
	if s.threshold.class != nil {
		s.addThreshold()
	}
	e.Kind = nil
	s.open, s.inReport, s.threshold = false, false, exception{}
}

// judge sets failure_reason and counted from what the line and its trace say.
func (s *stream) judge(e *Event) {
	if !e.Kind.Failure {
		return
	}
	reason := findReason(e.Text(Reason))
	if reason == nil {
		reason = s.reason
	}
	if reason == nil {
		reason = e.Kind.reason
	}
	if reason != nil {
		e.SetText(FailureReason, reason.value)
		e.SetBool(Counted, reason.counted)
	}
}

// addThreshold emits the event of a threshold sentence in the trace, with what the
// header tells.
func (s *stream) addThreshold() {
	e, table := &s.event, s.source.parser.table
	if e.Kind == nil {
		e.Reset()
	}
	for _, f := range [...]Field{Reason, ExceptionClass, RootCauseClass, FromState, ToState, Part} {
		e.Drop(f)
	}
	table.inTrace.match(s.threshold.words, e)
	e.SetText(Component, []byte(jobManager))
	e.SetText(ExceptionClass, s.threshold.class)
	e.SetText(Reason, s.threshold.words)
	if s.skipped != nil {
		s.header, _ = layout.Shipped(s.skipped)
		s.message, s.stamp = nil, nil
	}
	if s.message == nil {
		s.message = s.header.Message()
	}
	// A chunk's end can part the sentence from the header: its own place identifies it.
	s.origin.Offset, s.record = s.sentence.offset, s.sentence.record
	s.deliver(e)
}

// deliver adds what every event has and hands it on.
func (s *stream) deliver(e *Event) {
	if s.emittedOf != s.record {
		s.emittedOf, s.parts = s.record, 0
	}
	if s.parts > 0 {
		e.SetInt(Part, int64(s.parts))
	}
	s.parts++
	s.addHeader(e)
	if !e.Has(TaskName) && string(e.Text(Component)) == taskManager {
		fillThreadTask(e, s.header.Thread)
	}
	if t := e.Text(CheckpointType); t != nil && !e.Has(Savepoint) {
		e.SetBool(Savepoint, isSavepoint(t))
	}
	s.source.emit(e)
}

// addHeader adds what the header, its wrapper and the file tell.
func (s *stream) addHeader(e *Event) {
	e.Origin = s.origin
	s.addTime(e)
	l := &s.header
	e.SetText(EventName, e.Kind.name)
	e.SetText(Level, l.Level)
	e.SetText(Logger, l.Logger)
	e.SetText(Thread, l.Thread)
	e.SetText(Message, s.message)
	if !e.Has(JobID) {
		e.SetText(JobID, l.JobID)
	}
	if s != &s.source.main {
		e.SetText(Pod, s.pod)
		e.SetText(Container, s.container)
	}
	if s.source.Known != nil {
		e.addFrom(s.source.Known)
	}
}

// addTime adds the event's time: what its form told, else the header's, the wrapper's,
// the record's.
func (s *stream) addTime(e *Event) {
	clock := s.source.Clock
	wrapped, isWrapped := s.wrapperTime()
	if isWrapped {
		e.SetTime(RecordTime, wrapped)
	}
	truth, told := e.Time(Time)
	if !told && e.Kind.Name == "checkpoint_triggered" {
		ms, ok := e.Int(TriggerTime)
		truth, told = time.UnixMilli(ms), ok
	}
	if !told {
		truth, told = wrapped, isWrapped
	}
	if told {
		if offset, wrong := clock.Learn(s.header.Stamp, truth); wrong && s.source.WrongZone != nil {
			s.source.WrongZone(offset)
		}
	}
	if e.Has(Time) {
		return
	}
	if t, ok := clock.Instant(s.header.Stamp); ok {
		e.SetTime(Time, t)
	}
	if isWrapped && !e.Has(Time) {
		e.SetTime(Time, wrapped)
	}
	if !s.origin.Time.IsZero() && !e.Has(Time) {
		e.SetTime(Time, s.origin.Time)
	}
}

// wrapperTime returns the time of the wrapper round the header; one without a zone is
// UTC.
func (s *stream) wrapperTime() (time.Time, bool) {
	if s.stamp == nil {
		return time.Time{}, false
	}
	return layout.NewClock(time.UTC, false).Instant(s.stamp)
}
