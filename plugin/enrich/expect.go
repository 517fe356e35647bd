package enrich

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Expectation is what somebody says of a job's checkpoints.
type Expectation struct {
	Interval, Timeout time.Duration // 0 where not said
	// Off says that none are expected.
	Off bool
}

const (
	// minLimit is the shortest time that is worth telling.
	minLimit = time.Minute
	// defaultTimeout is Flink's own.
	defaultTimeout = 10 * time.Minute
	// manyGaps are so many times between checkpoints that they tell the interval, whatever
	// is configured; with fewGaps they do where nothing is.
	manyGaps, fewGaps = 10, 3
	// maxSkew is by how much a log's clock may differ from the JobManager's own; zones do by
	// a quarter of an hour at least.
	maxSkew = 10 * time.Minute
)

// expected is what is expected of a job's checkpoints.
type expected struct {
	interval, timeout, limit time.Duration
	from                     string // what tells the interval
}

// expected returns what is expected after a watch's last sign, by the lines up to it; no
// limit where that is not known.
func (l *Log) expected(w *watch, j *job) (x expected) {
	if j.held == nil || !j.RunAt.isZero() && w.Ref.before(j.RunAt) {
		return x
	}
	var said Expectation
	if l.teller.Expect != nil {
		said = l.teller.Expect(w.Job, j.Name)
	}
	seen := j.observe(w.Ref, l.facts.Began)
	if said.Off || seen.isSkewed {
		return x
	}

	property := func(name string) time.Duration {
		return readDuration(l.facts.Properties["execution.checkpointing."+name])
	}
	switch configured, inBacklog := property("interval"), property("interval-during-backlog"); {
	case said.Interval > 0:
		x.interval, x.from = said.Interval, "file"
	case l.facts.Properties["execution.checkpointing.interval-during-backlog"] != "" && inBacklog == 0:
		return x // no checkpoints are made then, and no line says when that is
	case seen.gaps >= manyGaps, seen.gaps >= fewGaps && configured == 0:
		x.interval, x.from = max(seen.median, inBacklog), "observed"
	case configured > 0 && seen.gaps > 0:
		// The job's own program may say otherwise, and batch jobs make none.
		x.interval, x.from = max(configured, property("min-pause"), inBacklog, seen.median), "configured"
	default:
		return x
	}
	switch timeout := property("timeout"); {
	case said.Timeout > 0:
		x.timeout = said.Timeout
	case seen.expiry > 0:
		x.timeout = max(seen.expiry, seen.longest)
	default:
		x.timeout = max(cmp.Or(timeout, defaultTimeout), seen.longest)
	}
	if x.interval > MaxOverdue || x.timeout > MaxOverdue {
		return expected{}
	}
	x.limit = max(3*x.interval, x.timeout+x.interval, minLimit)
	return x
}

// observed is what a job's checkpoints have shown.
type observed struct {
	gaps     int           // between the triggers of completed ones
	median   time.Duration // of the last of them
	longest  time.Duration // that one took to complete
	expiry   time.Duration // after which the last one expired
	isSkewed bool          // the log's clock is not the JobManager's own
}

// observe returns what a job's checkpoints have shown up to a place. The JobManager that
// began there may have another timeout than those before.
func (j *job) observe(p, began place) (o observed) {
	var gaps []time.Duration
	var last int64
	var newest *checkpoint
	for _, c := range j.checkpoints { // in the order of their ids
		if !c.Triggered.toldBy(p) {
			continue
		}
		if newest == nil || newest.Triggered.before(c.Triggered) {
			newest = c
		}
		if c.Savepoint || !c.Ended.toldBy(p) {
			continue
		}
		at := c.Triggered.At
		if c.TriggerTime > 0 {
			at = c.TriggerTime * int64(time.Millisecond)
		}
		switch took := time.Duration(c.Ended.At - at); c.End {
		case completed:
			o.longest = max(o.longest, took)
			if last > 0 && at > last {
				gaps = append(gaps, time.Duration(at-last))
			}
			last = at
		case expired:
			if began.isZero() || !c.Triggered.before(began) {
				o.expiry = took
			}
		}
	}
	if newest != nil && newest.TriggerTime > 0 {
		skew := time.Duration(newest.Triggered.At - newest.TriggerTime*int64(time.Millisecond))
		o.isSkewed = skew.Abs() > maxSkew
	}
	if o.gaps = len(gaps); o.gaps > 0 {
		gaps = gaps[max(0, o.gaps-manyGaps):]
		slices.Sort(gaps)
		o.median = gaps[len(gaps)/2]
	}
	return o
}

// readDuration reads a duration as Flink's configuration has it
// (org.apache.flink.util.TimeUtils): a number and a unit, milliseconds without one. 0 is
// what can't be read.
func readDuration(text string) time.Duration {
	text = strings.ToLower(strings.TrimSpace(text))
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	n, err := strconv.ParseInt(text[:digits], 10, 64)
	unit, ok := durationUnits[strings.TrimSpace(text[digits:])]
	if err != nil || !ok || n > int64(math.MaxInt64/unit) {
		return 0
	}
	return time.Duration(n) * unit
}

var durationUnits = func() map[string]time.Duration {
	units := map[string]time.Duration{}
	for unit, names := range map[time.Duration]string{
		24 * time.Hour:   "d day days",
		time.Hour:        "h hour hours",
		time.Minute:      "min m minute minutes",
		time.Second:      "s sec secs second seconds",
		time.Millisecond: "ms milli millis millisecond milliseconds",
		time.Microsecond: "µs micro micros microsecond microseconds",
		time.Nanosecond:  "ns nano nanos nanosecond nanoseconds",
	} {
		for name := range strings.FieldsSeq(names) {
			units[name] = unit
		}
	}
	units[""] = time.Millisecond
	return units
}()
