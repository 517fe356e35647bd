package enrich

import (
	"container/list"
	"os"
	"sync"
	"time"

	jsoniter "github.com/json-iterator/go"

	"flink-loki/parsers"
)

// MaxStateBytes is the default bound of a [State], in bytes of memory: it holds more than
// 10,000 attempts and 200 jobs.
const MaxStateBytes = 32 << 20

// State is what one agent knows. It is safe for concurrent use: a [Pass] has it alone.
type State struct {
	maxBytes int
	boot     int64 // tells this run of the agent from others

	mu           sync.Mutex // held by the present pass; guards the rest
	facts        map[string]*held
	order        list.List // of *held, the one that was not used for the longest time first
	bytes        int
	evicted      int
	changed      []*held                  // since the last save; some are gone
	scratch      []byte                   // of the last key
	stories      map[*checkpoint]struct{} // failures that some output has yet to be told
	tasks        map[string]*taskIndex    // attempts of TaskManagers, by their log
	watches      map[string][]*watch      // by output and log, those that are not idle
	watchesOfJob map[string][]*watch      // by output and job
	logOf        map[uint64]string        // names of the logs of files, by the hash that places have
	store        *store                   // nil in memory
	lock         *os.File                 // of the store's directory
	marks        map[string]bool          // of passes, that were not released
	released     []string                 // and are still in the store
}

// held is a fact and its place in the state.
type held struct {
	fact
	key     string
	size    int
	el      *list.Element
	changed bool // since the last save
}

// fact is one thing that is known. Its exported fields are what is stored.
type fact interface {
	// size returns how much memory the fact takes, in bytes, about.
	size() int
	// added is called when the fact enters the state, new or from the store, and gone when
	// it leaves.
	added(s *State)
	gone(s *State)
	// where is where the fact is held.
	where() **held
}

// base is what all facts have.
type base struct{ held *held }

func (b *base) where() **held { return &b.held }
func (b *base) added(*State)  {}
func (b *base) gone(*State)   {}

// newFact makes an empty fact of the kind that a key begins with.
var newFact = map[string]func() fact{
	"attempt":    func() fact { return &attempt{Subtask: -1, Parallelism: -1, Number: -1} },
	"slot":       func() fact { return &slot{} },
	"graph":      func() fact { return &graph{} },
	"vertex":     func() fact { return &vertex{} },
	"job":        func() fact { return &job{} },
	"checkpoint": func() fact { return &checkpoint{} },
	"log":        func() fact { return &logFile{} },
	"file":       func() fact { return &readFile{} },
	"watch":      func() fact { return &watch{} },
}

// NewState returns an empty state in memory. maxBytes bounds it, 0 is [MaxStateBytes].
func NewState(maxBytes int) *State {
	if maxBytes == 0 {
		maxBytes = MaxStateBytes
	}
	return &State{
		maxBytes: maxBytes, boot: time.Now().UnixNano(),
		facts: map[string]*held{}, stories: map[*checkpoint]struct{}{}, tasks: map[string]*taskIndex{}, marks: map[string]bool{},
		watches: map[string][]*watch{}, watchesOfJob: map[string][]*watch{}, logOf: map[uint64]string{},
	}
}

// find returns the fact under a key that is joined from parts by slashes, nil where
// there is none.
func find[T fact](s *State, kind string, parts ...[]byte) (found T) {
	h, ok := s.facts[string(s.joinKey(kind, parts))]
	if !ok {
		return found
	}
	s.order.MoveToBack(h.el)
	return h.fact.(T)
}

// obtain returns the fact under a key, which is made where there is none.
func obtain[T fact](s *State, kind string, parts ...[]byte) T {
	key := s.joinKey(kind, parts)
	if h, ok := s.facts[string(key)]; ok {
		s.order.MoveToBack(h.el)
		return h.fact.(T)
	}
	added := newFact[kind]().(T)
	s.put(string(key), added)
	return added
}

// joinKey returns a key in memory that the next one overwrites.
func (s *State) joinKey(kind string, parts [][]byte) []byte {
	key := append(s.scratch[:0], kind...)
	for _, part := range parts {
		key = append(append(key, '/'), part...)
	}
	s.scratch = key
	return key
}

func (s *State) put(key string, f fact) {
	h := &held{fact: f, key: key}
	h.el = s.order.PushBack(h)
	*f.where() = h
	s.facts[key] = h
	f.added(s)
	s.touch(f)
}

// touch notes that a fact has changed.
func (s *State) touch(f fact) {
	h := *f.where()
	s.mark(h)
	const overhead = 400 // of the maps, the list and the key
	size := f.size() + len(h.key) + overhead
	s.bytes += size - h.size
	h.size = size
}

// mark notes that the store has yet to be told of a change.
func (s *State) mark(h *held) {
	if !h.changed {
		h.changed = true
		s.changed = append(s.changed, h)
	}
}

// shrink forgets the facts that were not used for the longest time, until the state is
// within its bounds.
func (s *State) shrink() {
	for s.bytes > s.maxBytes && s.order.Len() > 0 {
		s.drop(s.order.Front().Value.(*held))
		s.evicted++
	}
}

func (s *State) drop(h *held) {
	delete(s.facts, h.key)
	s.order.Remove(h.el)
	s.bytes -= h.size
	s.mark(h)
	h.fact.gone(s)
}

// Evicted returns how many facts were forgotten because the state was full.
func (s *State) Evicted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.evicted
}

// Pass is the reading of one chunk by one output. It has the state alone from
// [State.Begin] to [Pass.End] or [Pass.Abandon].
type Pass struct {
	state  *State
	teller Teller
	logs   map[string]*Log
	files  map[string]*reading
	ended  bool
}

// Teller is an output that is told events.
type Teller struct {
	// ID tells apart outputs.
	ID string
	// Emit is given the events, and those that are made of several lines, which have no
	// place in a file.
	Emit func(e *parsers.Event, isMade bool)
	// SumStalls says that storms of write stalls are summed up.
	SumStalls bool
	// Complete says that no lines are missing, nor will come: those of whole files.
	Complete bool
	// Tag is that of the chunk, and Now the time at which it is read; the zero time where
	// files are read that may be old.
	Tag string
	Now time.Time
	// Expect says what is expected of a job's checkpoints, nil where nobody says.
	Expect func(jobID, jobName string) Expectation
}

// Begin begins a pass.
func (s *State) Begin(t Teller) *Pass {
	s.mu.Lock()
	return &Pass{state: s, teller: t, logs: map[string]*Log{}, files: map[string]*reading{}}
}

// Abandon ends a pass that [Pass.End] did not: to be deferred, in case of a panic. What
// the pass has changed stays, and is saved with the next one.
func (p *Pass) Abandon() {
	if !p.ended {
		p.ended = true
		p.state.mu.Unlock()
	}
}

// End ends a pass. What it has changed is kept in memory and, together with a mark,
// unless that is empty, in the store. After an error, which is the disk's, it is only in
// memory, and saved with the next pass.
func (p *Pass) End(mark string) error {
	defer p.Abandon()
	s := p.state
	for _, l := range p.logs {
		l.end()
	}
	for _, r := range p.files {
		r.end(s)
	}
	s.shrink()
	if mark != "" {
		s.marks[mark] = true
	}
	return s.save(mark)
}

// save appends what has changed to the store.
func (s *State) save(mark string) error {
	st := s.store
	if st == nil {
		s.saved()
		return nil
	}
	if st.size > 2*st.live+rewriteAfter {
		return s.rewrite()
	}
	var batch []entry
	for _, changed := range s.changed {
		e := entry{Key: changed.key}
		if h, ok := s.facts[changed.key]; ok {
			e.Value, _ = jsoniter.Marshal(h.fact)
		}
		batch = append(batch, e)
	}
	for _, released := range s.released {
		batch = append(batch, entry{Key: markPrefix + released})
	}
	if mark != "" {
		batch = append(batch, entry{Key: markPrefix + mark, Value: []byte("{}")})
	}
	if err := st.append(batch); err != nil {
		return err
	}
	s.saved()
	s.released = nil
	return nil
}

// saved notes that what has changed is stored.
func (s *State) saved() {
	for _, h := range s.changed {
		h.changed = false
	}
	clear(s.changed)
	s.changed = s.changed[:0]
}
