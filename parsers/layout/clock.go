package layout

import "time"

// Clock turns the times in the headers of one file into instants. Layouts print no zone,
// so the zone is configured, or learnt from lines that tell an instant besides.
//
// A local time that a zone had twice, when summer time ended, is the first of the two,
// unless the file's last line was later than that. A local time that it never had, when
// summer time began, is read by the clock before the change.
type Clock struct {
	loc   *time.Location
	learn bool

	learnt bool
	offset int // in seconds; what was learnt

	last time.Time // of the line before, for times that the zone had twice

	// The zone's offset on one day, where it was the same before and after.
	day       int64
	dayOffset int
}

// NewClock returns a clock of a zone. With learn, the zone is only what is taken until
// a line has told the clock's true offset.
func NewClock(loc *time.Location, learn bool) *Clock {
	return &Clock{loc: loc, learn: learn, day: -1}
}

// Instant returns the instant that a time means, and whether it means one: a time of
// day does not.
func (c *Clock) Instant(stamp []byte) (time.Time, bool) {
	w, ok := readStamp(stamp)
	if !ok {
		return time.Time{}, false
	}
	if !w.zoned {
		w.offset = c.offsetAt(w.sec)
	}
	c.last = w.utc()
	return c.last, true
}

// offsetAt returns the offset of a clock that shows sec.
func (c *Clock) offsetAt(sec int64) int {
	if c.learn && c.learnt {
		return c.offset
	}
	const daySeconds = 24 * 60 * 60
	if c.loc == time.UTC {
		return 0
	}
	day := sec / daySeconds
	if day == c.day {
		return c.dayOffset
	}
	before, after := c.zoneAt((day-1)*daySeconds), c.zoneAt((day+2)*daySeconds)
	if before == after {
		c.day, c.dayOffset = day, before
		return before
	}
	first, second := sec-int64(before), sec-int64(after)
	switch isFirst, isSecond := c.zoneAt(first) == before, c.zoneAt(second) == after; {
	case isFirst && isSecond && before != after:
		const slack = time.Minute // a file's lines may be a little out of order
		if time.Unix(first, 0).Before(c.last.Add(-slack)) {
			return after
		}
		return before
	case isSecond:
		return after
	}
	return before
}

// Learnt reports whether a line has told the clock's offset.
func (c *Clock) Learnt() bool { return c.learnt }

func (c *Clock) zoneAt(sec int64) int {
	_, offset := time.Unix(sec, 0).In(c.loc).Zone()
	return offset
}

const (
	// zoneStep is what all offsets of zones are multiples of.
	zoneStep = 15 * time.Minute
	// A line is written after what it tells, by at most this; and not before, but for
	// what clocks are rounded by.
	maxLag  = 6 * time.Minute
	maxLead = 5 * time.Second
)

// Learn takes the offset of the file's clock from a line that tells when it was
// written, besides its stamp. It reports whether the two can belong together and say
// other than the configured zone.
func (c *Clock) Learn(stamp []byte, truth time.Time) (offset time.Duration, contradicts bool) {
	w, ok := readStamp(stamp)
	if !ok || w.zoned {
		return 0, false
	}
	shown := time.Unix(w.sec, int64(w.nano)).Sub(truth) + maxLead
	offset = shown.Truncate(zoneStep)
	if shown < offset {
		offset -= zoneStep
	}
	if lag := shown - offset; lag > maxLag+maxLead || offset < -12*time.Hour || offset > 14*time.Hour {
		return 0, false
	}
	was := c.offsetAt(w.sec)
	c.learnt, c.offset = true, int(offset/time.Second)
	return offset, c.offset != was
}
