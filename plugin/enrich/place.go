package enrich

import (
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// place is where a line stands, and when it was written. The zero place is none.
type place struct {
	Log uint64 `json:"l,omitempty"` // hash of the log's name
	Gen int    `json:"g,omitempty"` // of the file under that name: rotation begins a new one
	Pos int64  `json:"p,omitempty"` // byte offset; where records have none, the number of the event
	At  int64  `json:"t,omitempty"` // ns since 1970
}

func (p place) isZero() bool { return p.At == 0 && p.Log == 0 }

// before reports whether p's line was written before q's: clocks may jump back, so
// within one file its order counts.
func (p place) before(q place) bool {
	switch {
	case p.Log != q.Log:
		return p.At < q.At
	case p.Gen != q.Gen:
		return p.Gen < q.Gen
	}
	return p.Pos < q.Pos
}

func (p place) notAfter(q place) bool { return !q.before(p) }

// toldBy reports whether p is a line, and not behind q's: what it told is known there.
func (p place) toldBy(q place) bool { return !p.isZero() && p.notAfter(q) }

// msSince returns the time from q to p, negative where one of the two has none.
func (p place) msSince(q place) float64 {
	if p.At == 0 || q.At == 0 {
		return -1
	}
	return float64(p.At-q.At) / 1e6
}

// earliest sets p to q where that is earlier, or p is none.
func (p *place) earliest(q place) {
	if p.isZero() || q.before(*p) {
		*p = q
	}
}

func hashName(name string) uint64 { return xxhash.Sum64String(name) }

// span is a part of a file that was read.
type span struct {
	From, To int64
	Since    int64 `json:",omitempty"` // when its first line was read, ns since 1970
}

// coverage is which parts of a file were read, in order and apart from each other.
type coverage struct {
	Gen   int    `json:",omitempty"`
	Spans []span `json:",omitempty"`
	// Carries says that nothing is missing between the generation before and this one.
	Carries bool `json:",omitempty"`
	// Head is a hash of the file's first line, 0 where it was not read.
	Head uint64 `json:",omitempty"`
	// Boot is the run of the agent that read it last.
	Boot int64 `json:",omitempty"`
	// ReadAt is when the newest record was read, ns since 1970.
	ReadAt int64 `json:",omitempty"`
}

// maxSpans bounds the gaps that are remembered.
const maxSpans = 32

// slack is how far apart two records may stand that follow each other: tail passes over
// empty lines. The header of a line is longer.
const slack = 24

// find returns the span that holds an offset or ends just before it, -1 for none.
func (c *coverage) find(offset int64) int {
	return slices.IndexFunc(c.Spans, func(s span) bool { return s.From <= offset && offset <= s.To+slack })
}

// isNew reports whether a record at offset 0, read at some time, can begin a new file
// under the same name.
func (c *coverage) isNew(readAt int64) bool {
	return len(c.Spans) > 0 && c.Spans[0].From == 0 && readAt > c.ReadAt
}

// restart begins a new generation of the file.
func (c *coverage) restart(carries bool) {
	c.Gen++
	c.Carries = carries
	c.Spans = nil
}

// add adds a part that was read.
func (c *coverage) add(from, to, readAt int64) {
	c.ReadAt = max(c.ReadAt, readAt)
	added := span{from, to, readAt}
	var out []span
	for _, s := range c.Spans {
		if s.To+slack < added.From || added.To+slack < s.From {
			out = append(out, s)
			continue
		}
		added = span{min(s.From, added.From), max(s.To, added.To), min(s.Since, added.Since)}
	}
	out = append(out, added)
	slices.SortFunc(out, func(a, b span) int { return int(min(max(a.From-b.From, math.MinInt32), math.MaxInt32)) })
	// What did not come for a long time does not come any more.
	for len(out) > 1 && (len(out) > maxSpans || c.ReadAt-out[1].Since > int64(patience)) {
		out = out[1:]
	}
	c.Spans = out
}

// hasHead reports whether the beginning was read, or does not come any more.
func (c *coverage) hasHead() bool {
	return len(c.Spans) > 0 && (c.Spans[0].From == 0 || c.ReadAt-c.Spans[0].Since > int64(patience))
}

// hasGap reports whether lines between those that were read are missing.
func (c *coverage) hasGap() bool { return len(c.Spans) > 1 }
