package parsers

import (
	"bytes"
	"time"
)

// Parser reads lines. It is safe for concurrent use; what belongs to one file is kept
// in its [Source].
type Parser struct {
	table   *table
	metrics metricSet
	loc     *time.Location
}

// New returns a Parser for lines whose times are those of loc. The error names a
// mistake in the tables of this package, which its tests rule out.
func New(loc *time.Location) (*Parser, error) {
	t, err := compiled()
	if err != nil {
		return nil, err
	}
	metrics, err := newMetricSet(nil)
	if err != nil {
		return nil, err
	}
	return &Parser{table: t, metrics: metrics, loc: loc}, nil
}

// Source joins the lines of one file into events: a header, and below it its trace.
// It holds back the event of the last header until the next one, or [Source.Flush].
// A Source belongs to one goroutine.
type Source struct {
	// Lesson is given the lines that are no events but teach, nil for none. It is called
	// as soon as the line is read.
	Lesson func(*Event)
	// Unrecognised is given the lines that are not known though their class is, nil for
	// none: an event of the kind unrecognised with time, level, logger and message.
	Unrecognised func(*Event)

	parser *Parser
	emit   func(*Event)

	open      bool // a header was read; lines without one are its trace
	origin    Origin
	header    header
	message   []byte // of the header, where it is cut
	event     Event  // of the header; its Kind is nil where the header is no event
	trace     trace
	reason    *failureReason // the first that the trace names
	threshold exception      // in the trace; its class is nil where there is none
	scratch   Event

	report   metricReport
	inReport bool  // the header is that of a metric report: lines without one are metrics
	metrics  int64 // that the record has given so far
}

// NewSource returns a Source that hands its events to emit. An event and its texts are
// valid only within the call of emit.
func (p *Parser) NewSource(emit func(*Event)) *Source {
	return &Source{parser: p, emit: emit, report: metricReport{set: &p.metrics, kind: p.table.metric}}
}

// Record reads one record: a line without its newline, or several lines that
// something before us has joined. The memory must stay unchanged until the next
// header has been read, or until [Source.Flush].
func (s *Source) Record(origin Origin, text []byte) {
	s.metrics = 0
	for {
		line, rest, more := bytes.Cut(text, []byte("\n"))
		s.line(origin, line)
		if !more {
			return
		}
		text = rest
	}
}

func (s *Source) line(origin Origin, line []byte) {
	h, ok := parseHeader(line)
	if !ok && len(line) > 0 && line[0] == '{' {
		s.json(origin, line)
		return
	}
	if !ok && s.inReport {
		s.origin, s.message = origin, trimRight(line)
		s.report.line(line, &s.event, s.deliverMetric)
		s.event.Kind = nil
		return
	}
	if !ok {
		if s.open {
			s.below(line)
		}
		return
	}
	if s.event.Kind != nil || s.threshold.class != nil {
		s.Flush()
	}
	s.open = true
	s.header, s.origin = h, origin
	s.trace, s.reason = trace{}, nil
	s.inReport = string(h.logger) == slf4jReporter.Names[0]
	forms := s.parser.table.formsOf(&h)
	if forms == nil {
		return
	}
	s.message = h.message()
	s.event.Reset()
	switch {
	case forms.forms.match(s.message, &s.event):
		if s.event.Kind.lesson {
			s.pass(s.Lesson)
			return
		}
	case len(s.message) == 0 || !forms.events || forms.silent.match(s.message, &s.event):
		s.event.Kind = nil
		return
	case forms.forms.matchDamaged(s.message, &s.event) && !s.event.Kind.lesson:
	default:
		s.event.Reset()
		s.event.Kind = s.parser.table.unrecognised
		s.pass(s.Unrecognised)
		return
	}
	s.event.SetText(Component, forms.component)
	s.learn(s.event.Text(Reason))
}

// pass hands a line that is no event to whoever wants it.
func (s *Source) pass(to func(*Event)) {
	if to != nil {
		s.addHeader(&s.event)
		to(&s.event)
	}
	s.event.Kind = nil
}

// json reads a line that is a JSON object.
func (s *Source) json(origin Origin, line []byte) {
	s.Flush()
	s.origin, s.header, s.message = origin, header{}, nil
	part := int64(0)
	s.parser.table.restEvents(line, origin.URL, &s.event, func(e *Event) {
		if part > 0 {
			e.SetInt(Part, part)
		}
		part++
		s.judge(e)
		s.deliver(e)
	})
	s.event.Kind = nil
}

// below reads a line of the trace below the open header.
func (s *Source) below(line []byte) {
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
	if s.threshold.class == nil && s.parser.table.inTrace.match(ex.words, &s.scratch) {
		s.threshold = ex
	}
}

// learn takes what the words of a reason or an exception tell besides.
func (s *Source) learn(words []byte) {
	s.scratch.Reset()
	if !s.parser.table.causes.match(words, &s.scratch) {
		return
	}
	id, ok := s.event.Int(CheckpointID)
	if other, has := s.scratch.Int(CheckpointID); ok && has && id != other {
		return
	}
	s.scratch.Drop(Reason)
	s.event.addFrom(&s.scratch)
}

// Flush emits what is held back. Lines of a trace that come later have lost their
// header.
func (s *Source) Flush() {
	e := &s.event
	isEvent := e.Kind != nil
	if isEvent {
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
		s.addThreshold(isEvent)
	}
	e.Kind = nil
	s.open, s.inReport, s.threshold = false, false, exception{}
}

// judge sets failure_reason and counted from what the line and its trace say.
func (s *Source) judge(e *Event) {
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
func (s *Source) addThreshold(isSecond bool) {
	e := &s.event
	if !isSecond {
		e.Reset()
	}
	for _, f := range [...]Field{Reason, ExceptionClass, RootCauseClass, FromState, ToState} {
		e.Drop(f)
	}
	s.parser.table.inTrace.match(s.threshold.words, e)
	e.SetText(Component, s.parser.table.classes.find([]byte(coordinator.Names[0])).component)
	e.SetText(ExceptionClass, s.threshold.class)
	e.SetText(Reason, s.threshold.words)
	if isSecond {
		e.SetInt(Part, 1)
	}
	s.message = s.header.message()
	s.deliver(e)
}

// deliver adds what every event has and hands it on.
func (s *Source) deliver(e *Event) {
	s.addHeader(e)
	if !e.Has(TaskName) && string(e.Text(Component)) == taskManager {
		fillThreadTask(e, s.header.thread)
	}
	if t := e.Text(CheckpointType); t != nil && !e.Has(Savepoint) {
		e.SetBool(Savepoint, isSavepoint(t))
	}
	s.emit(e)
}

// deliverMetric hands a metric on. A record can give several: those of a histogram, or
// of the lines of a report in one record.
func (s *Source) deliverMetric(e *Event) {
	if s.metrics > 0 {
		e.SetInt(Part, s.metrics)
	}
	s.metrics++
	s.deliver(e)
}

// addHeader adds what the header tells.
func (s *Source) addHeader(e *Event) {
	e.Origin = s.origin
	h := &s.header
	if t, ok := readStamp(h.stamp, s.parser.loc); ok {
		e.SetTime(Time, t)
	} else if !e.Has(Time) && !s.origin.Time.IsZero() {
		e.SetTime(Time, s.origin.Time)
	}
	e.SetText(EventName, e.Kind.name)
	e.SetText(Level, h.level)
	e.SetText(Logger, h.logger)
	e.SetText(Thread, h.thread)
	e.SetText(Message, s.message)
}
