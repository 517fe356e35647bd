package ship

import (
	"bytes"

	"flink-loki/parsers"
)

// fileSources keeps the lines of a chunk's files apart, so that a trace is joined with
// the header above it in its own file.
type fileSources struct {
	parser *parsers.Parser
	emit   func(file []byte, e *parsers.Event)

	byName  map[string]*fileSource
	order   []*fileSource
	current *fileSource // of the last record
}

type fileSource struct {
	*parsers.Source
	name []byte
}

// source returns the source for a file's lines; records without a name share one.
func (s *fileSources) source(name []byte) *fileSource {
	if s.current != nil && bytes.Equal(s.current.name, name) {
		return s.current
	}
	if s.byName == nil {
		s.byName = map[string]*fileSource{}
	}
	f, ok := s.byName[string(name)]
	if !ok {
		f = &fileSource{name: name}
		f.Source = s.parser.NewSource(func(e *parsers.Event) { s.emit(f.name, e) })
		f.Continues = true
		s.byName[string(name)] = f
		s.order = append(s.order, f)
	}
	s.current = f
	return f
}

// flush ends all files: what comes in another chunk is not joined.
func (s *fileSources) flush() {
	for _, f := range s.order {
		f.Flush()
	}
}
