package enrich

import (
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"flink-loki/parsers"
)

// readFile is what an output has read of one file: file/<output>/<name>.
type readFile struct {
	base
	coverage
	Newest int64 `json:",omitempty"` // time of its newest event, ns since 1970
	Events int64 `json:",omitempty"` // places of events whose records have no offset
	// Last is the last event of the file, and Lag by how much later it was read than it
	// was written, in ns. ReadOn is when a line was read last by the agent's clock, and Tag
	// the chunk's.
	Last   place
	Lag    int64  `json:",omitempty"`
	ReadOn int64  `json:",omitempty"`
	Tag    string `json:",omitempty"`
	Owner  string `json:",omitempty"` // whose the last event was
	Seen   bool   `json:",omitempty"` // at a tick
	Absent int64  `json:",omitempty"` // since which tick it is not there any more, ns since 1970
}

func (f *readFile) size() int { return 200 + len(f.Tag) + len(f.Owner) + len(f.Spans)*24 }

func (f *readFile) added(s *State) {
	if key, name, ok := f.log(); ok {
		s.logOf[hashName(key)] = name
	}
}

func (f *readFile) gone(s *State) {
	if key, _, ok := f.log(); ok {
		delete(s.logOf, hashName(key))
	}
}

// log returns the key of the file, and the name of its log.
func (f *readFile) log() (key, name string, ok bool) {
	_, rest, _ := strings.Cut(f.held.key, "/")
	if _, key, ok = strings.Cut(rest, "/"); ok {
		file, apart, _ := strings.Cut(key, "\x00")
		name = logName(file) + apart
	}
	return key, name, ok
}

// reading is the reading of one file in a pass.
type reading struct {
	file *readFile
	key  string
	id   uint64
	tag  string
	now  time.Time // by the agent's clock, zero where that tells nothing
	boot int64     // of the state
	// hasOffsets says that records tell where they stand.
	hasOffsets bool

	from, to  int64 // of what the pass has read; from is negative before the first record
	gap       int64 // the widest between two records that follow each other
	readAt    int64
	unbroken  int64 // offset from which on no line is missing
	wholeHead bool  // nor are there any missing before, in the file that had the name before
	repeated  int64 // lines before this offset were read before
	moved     bool  // that there is something to keep
	isNoted   bool  // that it was read
}

// read returns the reading of a file, which a key names.
func (p *Pass) read(key string) *reading {
	if r, ok := p.files[key]; ok {
		return r
	}
	r := &reading{
		file: ownOf[*readFile](p, "file", key), key: key, id: hashName(key), tag: p.teller.Tag, now: p.teller.Now, boot: p.state.boot, from: -1,
	}
	p.files[key] = r
	return r
}

// Line notes that a record of the file is read, before the events of it: its offset,
// negative where it is not known, its text, and when it was read.
func (r *reading) Line(offset int64, text []byte, readAt time.Time) {
	if !r.isNoted && !r.now.IsZero() {
		r.file.ReadOn, r.file.Tag, r.moved, r.isNoted = r.now.UnixNano(), r.tag, true, true
	}
	if offset < 0 {
		return
	}
	if r.from < 0 {
		r.begin(offset, text, readAt.UnixNano())
	} else if offset > r.to {
		r.gap = max(r.gap, offset-r.to)
	}
	r.to = max(r.to, offset+int64(len(text))+1)
}

// Own notes whose the event is that comes next: a tick tells it with what it makes of the
// file.
func (r *reading) Own(owner string) {
	if r.file.Owner != owner {
		r.file.Owner, r.moved = owner, true
	}
}

// begin finds out what was read of the file before the pass.
func (r *reading) begin(offset int64, text []byte, readAt int64) {
	c := &r.file.coverage
	r.hasOffsets, r.from, r.to, r.readAt, r.moved = true, offset, offset, readAt, true
	if offset == 0 {
		head := xxhash.Sum64(text)
		if c.isNew(readAt) && c.Head != head {
			// What was written between a stop and a start of the agent, to the file that had this
			// name before, may not have been read.
			c.restart(!c.hasGap() && c.Boot == r.boot)
		}
		c.Head = head
	}
	c.Boot = r.boot
	r.look(offset)
}

// resume finds out what was read of a file that no line is read of in this pass.
func (r *reading) resume() {
	if n := len(r.file.Spans); r.from < 0 && n > 0 {
		r.hasOffsets = true
		r.look(r.file.Spans[n-1].To)
	}
}

func (r *reading) look(offset int64) {
	c := &r.file.coverage
	r.unbroken, r.repeated = offset, offset
	if i := c.find(offset); i >= 0 {
		r.unbroken, r.repeated = c.Spans[i].From, c.Spans[i].To
	}
	r.wholeHead = r.unbroken == 0 && (c.Gen == 0 || c.Carries)
}

// end notes what the pass has read.
func (r *reading) end(s *State) {
	if r.from >= 0 {
		r.file.coverage.add(r.from, r.to+r.gap, r.readAt)
	}
	if r.moved {
		s.touch(r.file)
	}
}

// place returns where an event's line stands.
func (r *reading) place(e *parsers.Event) place {
	at, ok := e.Time(parsers.Time)
	if !ok {
		at = time.Unix(0, r.file.Newest)
	}
	if offset := e.Origin.Offset; offset >= 0 && offset < r.repeated && at.UnixNano() > r.file.Newest+int64(time.Second) {
		// Lines that were read before can't be newer than all lines that were read: this is
		// another file under the same name, and its beginning is missing.
		r.file.coverage.restart(false)
		r.look(offset)
		r.from = offset
	}
	p := place{Log: r.id, Gen: r.file.Gen, Pos: e.Origin.Offset, At: at.UnixNano()}
	if p.Pos < 0 {
		r.file.Events++
		p.Pos, r.moved = r.file.Events, true
	}
	if p.At > r.file.Newest {
		r.file.Newest, r.moved = p.At, true
	}
	if r.file.Last.before(p) || r.file.Last.isZero() {
		r.file.Last, r.file.Lag, r.moved = p, 0, true
		if !r.now.IsZero() {
			r.file.Lag = r.now.UnixNano() - p.At
		}
	}
	return p
}

// isWhole reports whether no line is missing between a place in the file and the present
// line.
func (r *reading) isWhole(since place) bool {
	switch {
	case !r.hasOffsets:
		return true
	case since.Gen != r.file.Gen:
		return since.Gen < r.file.Gen && r.wholeHead
	}
	return since.Pos >= r.unbroken || r.unbroken == 0
}

// hasGap reports whether lines of the file are missing that may still come.
func (r *reading) hasGap() bool {
	if !r.hasOffsets || len(r.file.Spans) == 0 {
		return false
	}
	return r.file.hasGap() || r.from > r.file.Spans[len(r.file.Spans)-1].To+slack
}

// isRepeated reports whether an event's line was read before the pass.
func (r *reading) isRepeated(e *parsers.Event) bool {
	return e.Origin.Offset >= 0 && e.Origin.Offset < r.repeated
}
