package ship

import (
	"errors"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"flink-loki/parsers"
	"flink-loki/plugin/enrich"
	"flink-loki/plugin/loki"
	"flink-loki/plugin/record"
)

// TickTag is the tag of records that are no log lines, but tell that time passes: those of
// a dummy input.
const TickTag = "flink_loki.tick"

const (
	// settling is how long ticks must have come before they may tell that lines are absent:
	// after a start, Fluent Bit first reads what was written meanwhile.
	settling = 2 * time.Minute
	// maxPause is how long after the one before a tick may come that goes on with it, and how
	// long after it was made it may be read.
	maxPause = 5 * time.Minute
	maxDelay = time.Minute
)

// ticks is what an output remembers of its ticks.
type ticks struct {
	since, last time.Time
}

// next takes a tick, and reports whether ticks have come for long enough.
func (t *ticks) next(at time.Time) bool {
	if pause := at.Sub(t.last); t.last.IsZero() || pause > maxPause || pause < -maxPause {
		t.since = at
	}
	t.last = at
	return at.Sub(t.since) >= settling
}

// maxLook is how long file systems may take, in one tick, to say whether files are there.
const maxLook = time.Second

// look finds out whether files are there.
type look struct {
	stat  func(name string) (os.FileInfo, error) // os.Stat
	busy  atomic.Bool
	until time.Time // of the present tick
}

// begin begins a tick.
func (l *look) begin() { l.until = time.Now().Add(maxLook) }

// exists reports whether there is a file of a name. That is not known while a file system
// hangs, as one of a network can: it is not asked again until it has answered.
func (l *look) exists(name string) (is, known bool) {
	left := time.Until(l.until)
	if left <= 0 || !l.busy.CompareAndSwap(false, true) {
		return false, false
	}
	there := make(chan bool, 1)
	go func() {
		is := true
		defer func() {
			_ = recover()
			l.busy.Store(false)
			there <- is
		}()
		_, err := l.stat(name)
		is = !errors.Is(err, fs.ErrNotExist)
	}()
	select {
	case is := <-there:
		return is, true
	case <-time.After(left):
		return false, false
	}
}

// totals are what a heartbeat counts, since the output was started.
type totals struct {
	records, events, unrecognised, failedFlushes atomic.Int64
}

// tick reads a chunk of ticks: what has become true by the passing of time, and a
// heartbeat. Several ticks in one chunk are one.
func (o *Output) tick(pass *enrich.Pass, batch *loki.Batch, chunk []byte) {
	var at time.Time
	record.Decode(chunk, o.cfg.Keys, func(r *record.Record) {
		if r.Time.After(at) {
			at = r.Time
		}
	})
	if at.IsZero() {
		return
	}
	if isSettled, delay := o.ticks.next(at), o.now().Sub(at); isSettled && delay.Abs() <= maxDelay {
		o.look.begin()
		pass.Tick(enrich.Tick{
			At:      at,
			Pending: func(tag string) bool { return o.kept.journal.Pending(o.renderer, tag) },
			Owner:   func(owner string) { o.files.tenants.line = owner },
			Exists:  o.look.exists,
		})
	}
	// A heartbeat has no line, whose record could tell a tenant.
	o.files.tenants.line = ""
	o.add(batch, o.heartbeat(at), true)
}

func (o *Output) heartbeat(at time.Time) *parsers.Event {
	pending, _ := o.kept.journal.Size()
	return enrich.Heartbeat(at, string(o.cfg.Placement.Labels["cluster"]), enrich.Counts{
		Uptime:        at.Sub(o.startedAt),
		Records:       o.totals.records.Load(),
		Events:        o.totals.events.Load(),
		Unrecognised:  o.totals.unrecognised.Load(),
		FailedFlushes: o.totals.failedFlushes.Load(),
		DeadLetters:   int64(o.dead.total()),
		Files:         int64(len(o.files.byName)),
		PendingChunks: int64(pending),
	})
}
