package ship

import (
	"bytes"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"flink-loki/parsers"
	"flink-loki/parsers/layout"
	"flink-loki/plugin/enrich"
	"flink-loki/plugin/record"
)

// maxFiles bounds the files that are remembered from chunk to chunk.
const maxFiles = 4096

// files is what the output keeps of the files whose lines it reads.
type files struct {
	cfg    *Config
	log    *slog.Logger
	parser *parsers.Parser
	// tenants is told whose line is being read.
	tenants tenants
	byName  map[string]*file
}

// file is one of them.
type file struct {
	clock *layout.Clock
	known parsers.Event // what its name tells
	told  bool          // that its clock is not in the configured zone
}

func (f *files) get(name []byte) *file {
	if known, ok := f.byName[string(name)]; ok {
		return known
	}
	if f.byName == nil || len(f.byName) == maxFiles {
		f.byName = map[string]*file{}
	}
	added := &file{clock: f.parser.NewClock()}
	parsers.AddFileName(&added.known, bytes.Clone(name))
	f.byName[string(name)] = added
	return added
}

// sources keeps the lines of a chunk's files apart, so that a trace is joined with the
// header above it in its own file.
type sources struct {
	files *files
	log   *slog.Logger
	pass  *enrich.Pass
	tag   string
	// identify gives an event what tells it from all others.
	identify func(tag string, file []byte, e *parsers.Event)
	// unrecognised is given the lines that are not known though their class is.
	unrecognised func(file []byte, e *parsers.Event)

	before  []byte // the record before the one that met a bug
	byKey   map[string]*source
	order   []*source
	current *source // of the last record
}

// source is one file in a chunk, or, where the records do not name their files, one pod
// or whatever else tells records apart.
type source struct {
	*parsers.Source
	log    *enrich.Log
	name   []byte
	tenant []byte // as the record tells it
	fields [][]byte
	last   []byte // record
}

func (s *source) is(r *record.Record, key TenantKey) bool {
	if !bytes.Equal(s.name, r.Filename) || !bytes.Equal(s.tenant, key.ofRecord(r)) {
		return false
	}
	for i, value := range r.Fields[:len(s.fields)] {
		if !bytes.Equal(s.fields[i], value) {
			return false
		}
	}
	return true
}

// of returns the source for a record's line.
func (s *sources) of(r *record.Record) *source {
	if s.current == nil || !s.current.is(r, s.files.cfg.TenantKey) {
		s.current = s.find(r)
	}
	s.current.log.Line(r.Offset, r.Line, r.Time)
	return s.current
}

func (s *sources) find(r *record.Record) *source {
	recordFields := s.files.cfg.RecordFields
	key := string(r.Filename)
	for i := range recordFields {
		key += "\x00" + string(r.Fields[i])
	}
	if tenant := s.files.cfg.TenantKey.ofRecord(r); len(tenant) > 0 {
		key += "\x00" + string(tenant)
	}
	if s.byKey == nil {
		s.byKey = map[string]*source{}
	}
	found, ok := s.byKey[key]
	if !ok {
		found = s.add(r, key)
		s.byKey[key] = found
	}
	return found
}

func (s *sources) add(r *record.Record, key string) *source {
	file := s.files.get(r.Filename)
	added := &source{name: r.Filename, tenant: s.files.cfg.TenantKey.ofRecord(r), fields: slices.Clone(r.Fields[:len(s.files.cfg.RecordFields)])}
	tenant := string(added.tenant)
	// What is not read from a file is one log for each tag; pods can have files of the same
	// name.
	name, apart := string(r.Filename), ""
	if name == "" {
		name = s.tag
	}
	if !file.known.Has(parsers.Pod) && !file.known.Has(parsers.ContainerID) {
		apart = key[len(r.Filename):]
	}
	added.log = s.pass.Log(string(s.files.cfg.Placement.Labels["cluster"]), name, apart)
	emit := func(e *parsers.Event) {
		s.identify(s.tag, added.name, e)
		s.files.tenants.begin(tenant, e)
		added.log.Own(s.files.tenants.line)
		added.log.Event(e)
	}
	added.Source = s.files.parser.NewSource(emit)
	added.Lesson = added.log.Lesson
	added.Continues = true
	added.Clock = file.clock
	added.WrongZone = func(offset time.Duration) { s.files.tellZone(file, r.Filename, offset) }
	added.Unrecognised = func(e *parsers.Event) {
		s.unrecognised(added.name, e)
		emit(e)
	}
	added.Known = &file.known
	if len(added.fields) > 0 {
		known := file.known
		for i, value := range added.fields {
			known.SetValue(s.files.cfg.RecordFields[i].Field, value)
		}
		added.Known = &known
	}
	s.order = append(s.order, added)
	return added
}

// tellZone says once that a file's times are not in the configured zone.
func (f *files) tellZone(file *file, name []byte, offset time.Duration) {
	if file.told || f.cfg.LearnZone {
		return
	}
	file.told = true
	f.log.Warn("a file's clock is not in the configured zone: set option timezone, or let it be learnt with timezone auto",
		"file", string(name), "ahead_of_utc", offset, "timezone", zoneName(f.cfg.Location))
}

// read reads a record. A bug that it meets costs the event that met it: unread is then
// what stands for it, and reason says what happened.
func (s *sources) read(r *record.Record, origin parsers.Origin) (unread []byte, reason string) {
	if reason = s.try(r, origin); reason == "" {
		return nil, ""
	}
	// It can have been the event of an earlier record, which this one has ended.
	if again := s.try(r, origin); again != "" {
		return r.Line, again
	}
	return s.before, reason
}

// try reads a record, and says what bug it met.
func (s *sources) try(r *record.Record, origin parsers.Origin) (reason string) {
	defer func() {
		if p := recover(); p != nil {
			reason = s.caught(p, r)
		}
	}()
	source := s.of(r)
	if r.Object != nil {
		source.Object(origin, r.Object)
	} else {
		source.Record(origin, r.Line)
	}
	source.last = r.Line
	return ""
}

// caught notes a panic. The source that it came from is not used any more.
func (s *sources) caught(p any, r *record.Record) (reason string) {
	s.log.Error("a bug in the plugin was caught, which costs one record; please report it",
		"file", string(r.Filename), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	s.before = nil
	if s.current != nil {
		s.before = s.current.last
		for key, source := range s.byKey {
			if source == s.current {
				delete(s.byKey, key)
			}
		}
		s.order = slices.DeleteFunc(s.order, func(source *source) bool { return source == s.current })
		s.current = nil
	}
	return fmt.Sprintf("a bug in the plugin: %v", p)
}

// flush ends all files: what comes in another chunk is not joined. It returns what could
// not be read.
func (s *sources) flush() (reasons []string) {
	for _, source := range slices.Clone(s.order) {
		func() {
			defer func() {
				if p := recover(); p != nil {
					s.current = source
					reasons = append(reasons, s.caught(p, &record.Record{Filename: source.name}))
				}
			}()
			source.Flush()
		}()
	}
	return reasons
}
