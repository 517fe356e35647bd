package parsers

import (
	"bytes"
	"slices"
	"time"

	"flink-loki/parsers/internal/ascii"
	"flink-loki/parsers/layout"
)

// Options say how lines are read.
type Options struct {
	// Location is the zone of times that name none.
	Location *time.Location
	// LearnZone takes the zone from the lines themselves, where they tell it, and
	// Location only until then.
	LearnZone bool
	// Keys are the keys of JSON layouts, nil for the default ones.
	Keys *layout.Keys
	// Metrics are the metrics of Flink's reports that become events: names, with * for
	// any text; with + before each they are added to [DefaultMetrics], which stand for nil.
	Metrics []string
}

// Parser reads lines. It is safe for concurrent use; what belongs to one file is kept
// in its [Source].
type Parser struct {
	table   *table
	metrics metricSet
	options Options
}

// New returns a Parser. The error says what in the options can't be used.
func New(options Options) (*Parser, error) {
	t, err := compiled()
	if err != nil {
		return nil, err
	}
	if options.Keys == nil {
		options.Keys = layout.DefaultKeys()
	}
	metrics, err := newMetricSet(options.Metrics)
	if err != nil {
		return nil, err
	}
	return &Parser{table: t, metrics: metrics, options: options}, nil
}

// Source reads the lines of one file: it takes them out of their wrappers, and joins
// them into events. It holds back the event of the last header until the next one, or
// [Source.Flush]. A Source belongs to one goroutine.
type Source struct {
	// Lesson is given the lines that are no events but teach, nil for none. It is called
	// as soon as the line is read.
	Lesson func(*Event)
	// Unrecognised is given the lines that are not known though their class is, nil for
	// none: an event of the kind unrecognised with time, level, logger and message.
	Unrecognised func(*Event)
	// WrongZone is told the offset of the file's clock, where lines tell another than
	// the configured zone has; nil for none.
	WrongZone func(offset time.Duration)
	// Continues says that the file has lines before the first one of this source, which
	// another source has read: those of an earlier chunk.
	Continues bool
	// Clock reads the file's times. An earlier source of the same file can hand its own
	// on, with what it has learnt.
	Clock *layout.Clock
	// Known is what is known of every line of the file: fields that its events get, where
	// their lines do not tell them; nil for nothing.
	Known *Event

	parser *Parser
	emit   func(*Event)

	records  int // that were read
	main     stream
	others   []*stream // of lines that came wrapped
	prefixes layout.Prefixes
	object   layout.Object
	flushed  lastFlush // of a RocksDB LOG
	report   metricReport
	scratch  Event
}

// NewClock returns a clock for one file.
func (p *Parser) NewClock() *layout.Clock {
	return layout.NewClock(p.options.Location, p.options.LearnZone)
}

// NewSource returns a Source that hands its events to emit. An event and its texts are
// valid only within the call of emit.
func (p *Parser) NewSource(emit func(*Event)) *Source {
	s := &Source{parser: p, emit: emit, Clock: p.NewClock(), report: metricReport{set: &p.metrics, kind: p.table.metric}}
	s.main.source = s
	return s
}

// Record reads one record: a line without its newline, or several lines that
// something before us has joined. The memory must stay unchanged until the next
// header has been read, or until [Source.Flush].
func (s *Source) Record(origin Origin, text []byte) {
	s.records++
	wanted := &s.parser.table.classes.wanted
	if s.Lesson == nil {
		wanted = &s.parser.table.classes.telling
	}
	for {
		// Most lines are of a class that is not wanted, in Flink's own layout: they get no
		// further look.
		last, line, rest, logger, after := wanted.SkipOthers(text)
		if last != nil {
			s.main.skip(&origin, last)
		}
		if line == nil {
			return
		}
		if logger != nil && s.isPlain(logger, after) {
			s.main.skip(&origin, line)
		} else {
			s.line(&origin, line)
		}
		if text = rest; len(text) == 0 {
			return
		}
	}
}

// isPlain reports whether what a class says is known, and neither event nor lesson.
func (s *Source) isPlain(logger, after []byte) bool {
	forms := s.parser.table.classes.find(logger)
	return forms == nil || forms.teaches && s.Lesson == nil || forms.isPlain(layout.ShippedMessage(after), s.Lesson != nil)
}

// Object reads one record whose parts something before us has taken apart, such as
// Fluent Bit's parser for JSON.
func (s *Source) Object(origin Origin, o *layout.Object) {
	s.records++
	if line, ok := o.Line(); ok {
		s.main.begin(&origin, &noWrapper, &line)
	}
}

// Flush emits what is held back. Lines of a trace that come later have lost their
// header.
func (s *Source) Flush() {
	s.main.end()
	for len(s.others) > 0 {
		s.endOldest()
	}
}

// Oldest returns the lowest [Origin.Line] of the events that are held back; ok is false
// where none is.
func (s *Source) Oldest() (line int, ok bool) {
	for _, st := range append([]*stream{&s.main}, s.others...) {
		if (st.event.Kind != nil || st.threshold.class != nil) && (!ok || st.origin.Line < line) {
			line, ok = st.origin.Line, true
		}
	}
	return line, ok
}

func (s *Source) line(origin *Origin, line []byte) {
	if len(line) > 0 && (line[0] == '\t' || s.main.inReport && ascii.IsAlpha(line[0])) { // of a trace, of a report
		s.main.below(origin, line)
	} else if l, ok := layout.Shipped(line); ok {
		s.main.begin(origin, &noWrapper, &l)
	} else {
		s.wrapped(origin, line)
	}
}

var noWrapper layout.Wrapper

// maxWrappers bounds the wrappers round one line.
const maxWrappers = 4

// wrapped reads a line that may have something before it.
func (s *Source) wrapped(origin *Origin, line []byte) {
	if bytes.HasPrefix(line, []byte("Container: "+yarnContainer)) {
		s.section(line)
		return
	}
	s.unwrap(origin, layout.Wrapper{}, line)
}

// unwrap takes off what stands before a line, and reads it.
func (s *Source) unwrap(origin *Origin, w layout.Wrapper, text []byte) {
	isObject := false
	for range maxWrappers {
		text = layout.CleanHead(text)
		inner, ok := s.prefixes.Unwrap(text, &w)
		if trimmed := ascii.TrimLeft(text); !ok && len(trimmed) > 0 && trimmed[0] == '{' {
			s.object.Reset()
			isObject = s.parser.options.Keys.ReadObject(trimmed, &s.object)
			if inner, ok = s.object.Wrapped(&w); ok {
				isObject = false
			}
		}
		if !ok {
			break
		}
		if st := s.stream(&w); w.Partial || len(st.partial) > 0 {
			st.join(origin, &w, inner)
			return
		}
		text = inner
	}
	text = layout.Clean(text)
	if st := s.stream(&w); isObject {
		st.object(origin, &w, text)
	} else {
		st.text(origin, &w, text)
	}
}

// section begins the log of another container in the output of "yarn logs":
//
//	Container: container_e24_1566836790522_8088_01_000002 on host-a.example_45454
func (s *Source) section(line []byte) {
	s.Flush()
	known := &Event{}
	addYARNContainer(known, line)
	if s.Known != nil {
		known.addFrom(s.Known)
	}
	s.Known = known
}

// maxStreams bounds the streams of one file whose lines are kept apart.
const maxStreams = 64

// stream returns the stream that a wrapper names: lines of other containers, and of
// another output, do not belong to the same trace.
func (s *Source) stream(w *layout.Wrapper) *stream {
	if w.Container == nil && w.Pod == nil && w.Output == nil {
		return &s.main
	}
	for _, st := range s.others {
		if bytes.Equal(st.container, w.Container) && bytes.Equal(st.pod, w.Pod) && bytes.Equal(st.output, w.Output) {
			return st
		}
	}
	for len(s.others) >= maxStreams {
		s.endOldest()
	}
	st := &stream{source: s, container: bytes.Clone(w.Container), pod: bytes.Clone(w.Pod), output: bytes.Clone(w.Output)}
	s.others = append(s.others, st)
	return st
}

// endOldest ends the stream that was there first. The last line of one, where it came in
// parts, can be wrapped once more, and begin another stream.
func (s *Source) endOldest() {
	oldest := s.others[0]
	oldest.end()
	s.others = slices.DeleteFunc(s.others, func(st *stream) bool { return st == oldest })
}
