package enrich

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// Tick is a tick of the agent's clock.
type Tick struct {
	At time.Time
	// Pending reports whether chunks of a tag are known that are not delivered.
	Pending func(tag string) bool
	// Owner is told whose file the events are made of that come next.
	Owner func(owner string)
	// Exists reports whether there is a file of a name.
	Exists func(file string) bool
}

// live is how late a line may be read of a file that is read as it is written.
const live = time.Minute

// Tick tells what has become true by the passing of time, of files that are read as they
// are written, or that say nothing: a backlog tells it itself.
func (p *Pass) Tick(t Tick) {
	logs := p.logsByFile()
	for _, f := range ownFacts[*readFile](p, "file") {
		key := strings.TrimPrefix(f.held.key, p.ownPrefix("file"))
		silent := t.At.Sub(time.Unix(0, f.ReadOn))
		if f.ReadOn == 0 || silent >= maxOverdue || t.Pending(f.Tag) {
			continue
		}
		t.Owner(f.Owner)
		isLive, isRemoved := f.isLive(), p.isRemoved(f, key, t.Exists)
		at := place{Log: hashName(key), Gen: f.Gen, Pos: math.MaxInt64, At: t.At.Add(-live).UnixNano()}
		p.tickStories(f, at, t.At, silent)
		for _, l := range logs[key] {
			switch {
			case isLive:
				l.changed = p.sumStalls(l.facts, at, false, l.hasGap()) || l.changed
			case silent >= storyTime:
				l.changed = p.sumStalls(l.facts, place{}, true, false) || l.changed
			}
			for _, w := range slices.Clone(l.watches()) {
				switch {
				case w.File != key:
				case isRemoved:
					l.abandon(w, t.At)
				case isLive:
					l.judge(w, at)
				}
			}
			if l.changed {
				p.state.touch(l.facts)
			}
		}
	}
}

// isRemoved reports whether the file that a key names was there at an earlier tick and is
// not any more.
func (p *Pass) isRemoved(f *readFile, key string, exists func(file string) bool) bool {
	name, _, _ := strings.Cut(key, "\x00")
	isThere := exists(name)
	if isThere && !f.Seen {
		f.Seen = true
		p.state.touch(f)
	}
	return f.Seen && !isThere
}

// abandon ends the watch of a job whose log is removed.
func (l *Log) abandon(w *watch, at time.Time) {
	if !w.Stopped {
		l.tellRecovered(w, at.UnixNano(), nil)
		w.Stopped = true
		l.state.touch(w)
	}
}

// isLive reports whether the file is read as it is written, as far as its last event tells.
func (f *readFile) isLive() bool { return time.Duration(f.Lag).Abs() <= live }

func (p *Pass) ownPrefix(kind string) string {
	return string(p.state.joinKey(kind, [][]byte{[]byte(p.teller.ID), nil}))
}

// ownFacts returns the facts of a kind that are the output's own, in the order of their keys.
func ownFacts[F fact](p *Pass, kind string) (own []F) {
	prefix := p.ownPrefix(kind)
	for key, h := range p.state.facts {
		if f, ok := h.fact.(F); ok && strings.HasPrefix(key, prefix) {
			own = append(own, f)
		}
	}
	slices.SortFunc(own, func(a, b F) int { return cmp.Compare((*a.where()).key, (*b.where()).key) })
	return own
}

// logsByFile returns the output's logs, by the keys of the files that hold them.
func (p *Pass) logsByFile() map[string][]*Log {
	prefix := p.ownPrefix("log")
	logs := map[string][]*Log{}
	for _, l := range ownFacts[*logFile](p, "log") {
		file := l.File
		if p.state.facts[p.ownPrefix("file")+file] == nil {
			continue
		}
		r := p.read(file)
		r.resume()
		logs[file] = append(logs[file], p.newLog(r, strings.TrimPrefix(l.held.key, prefix), ""))
	}
	return logs
}

// tickStories tells the failures of a file that nothing more is to be expected of.
func (p *Pass) tickStories(f *readFile, at place, now time.Time, silent time.Duration) {
	wait := storyTime
	if f.hasGap() {
		wait = patience
	}
	isLive := f.isLive()
	var over []*checkpoint
	for c := range p.state.stories {
		if !c.isUntold(p.teller.ID) || c.Counted.Log != at.Log {
			continue
		}
		if isLive && now.Sub(time.Unix(0, c.Counted.At)) >= wait || silent >= wait {
			over = append(over, c)
		}
	}
	p.tellAll(over, now)
}

// finishWatches tells what was overdue up to the last lines.
func (p *Pass) finishWatches() {
	logs := p.logsByFile()
	for _, f := range ownFacts[*readFile](p, "file") {
		key := strings.TrimPrefix(f.held.key, p.ownPrefix("file"))
		for _, l := range logs[key] {
			for _, w := range slices.Clone(l.watches()) {
				if w.File == key {
					l.judge(w, f.Last)
				}
			}
		}
	}
}
