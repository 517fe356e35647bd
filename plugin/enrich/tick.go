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
	// Exists reports whether there is a file of a name, as far as that is known.
	Exists func(file string) (is, known bool)
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
		if f.ReadOn == 0 || silent >= MaxOverdue || t.Pending(f.Tag) {
			continue
		}
		t.Owner(f.Owner)
		isLive := f.isLive()
		at := place{Log: hashName(key), Gen: f.Gen, Pos: math.MaxInt64, At: t.At.Add(-live).UnixNano()}
		p.tickStories(f, at, t.At, silent)
		isWatched := slices.ContainsFunc(logs[key], func(l *Log) bool { return len(l.watches()) > 0 })
		isRemoved := p.isRemoved(f, key, t, isWatched)
		for _, l := range logs[key] {
			switch {
			case isLive:
				l.changed = p.sumStalls(l.facts, at, false, l.hasGap()) || l.changed
			case silent >= storyTime:
				l.changed = p.sumStalls(l.facts, place{}, true, false) || l.changed
			}
			for _, w := range l.watches() {
				switch {
				case w.File != key:
				case isRemoved:
					l.abandon(w, t.At)
				case isLive:
					l.use(w)
					l.judge(w, at)
				}
			}
			p.state.unlist(l.watchIndex)
			if l.changed {
				p.state.touch(l.facts)
			}
		}
	}
}

// maxAbsence is how long a file may be gone whose log goes on: one that is rotated is there
// again with the next line.
const maxAbsence = 5 * time.Minute

// isRemoved reports whether the file that a key names was there at an earlier tick, and has
// been gone for long. It is not looked for where nothing is watched.
func (p *Pass) isRemoved(f *readFile, key string, t Tick, isWatched bool) bool {
	name, _, _ := strings.Cut(key, "\x00")
	seen, absent := f.Seen, f.Absent
	if !isWatched {
		f.Absent = 0
	} else if is, known := t.Exists(name); known {
		switch {
		case is:
			f.Seen, f.Absent = true, 0
		case f.Seen && f.Absent == 0:
			f.Absent = t.At.UnixNano()
		}
	}
	if f.Seen != seen || f.Absent != absent {
		p.state.touch(f)
	}
	return f.Absent != 0 && t.At.Sub(time.Unix(0, f.Absent)) >= maxAbsence
}

// abandon ends the watch of a job whose log is removed.
func (l *Log) abandon(w *watch, at time.Time) {
	l.tellRecovered(w, at.UnixNano(), nil)
	w.watched, w.Signs = watched{}, nil
	l.state.touch(w)
}

// use notes that what is known of a job that is watched is needed, though no line asks for
// it: it is not what the state forgets first.
func (l *Log) use(w *watch) {
	order := &l.state.order
	order.MoveToBack(w.held.el)
	if j := l.jobOfWatch(w); j.held != nil {
		for _, c := range j.checkpoints {
			order.MoveToBack(c.held.el)
		}
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
			for _, w := range l.watches() {
				if w.File == key {
					l.judge(w, f.Last)
				}
			}
		}
	}
}
