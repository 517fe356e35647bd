package parsers

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
)

// table is the compiled form of [Kinds].
type table struct {
	classes classIndex
	rocksDB *classForms
	anyone  *classForms // all forms of classes, for layouts without a logger
	firmly  *classForms // those that start with words of their own
	inTrace formSet     // forms without a class
	causes  formSet

	statistics, backPressure, metric, unrecognised *Kind
}

// classForms are the forms that one class can write.
type classForms struct {
	component []byte // nil: the form has it
	forms     formSet
	lessons   formSet
	silent    silentSet // known statements that are neither events nor lessons
	report    bool      // lines below the header are metrics
	teaches   bool      // the class writes lessons and no events
	// known says that whatever the class writes is known: a line that fits no form is
	// damaged, or Flink has reworded it.
	known bool
}

// isPlain reports whether a message is known to be no event and nothing new, and no
// lesson where these are wanted.
func (c *classForms) isPlain(message []byte, wantLessons bool) bool {
	if len(message) == 0 || c.forms.may(message) {
		return false
	}
	if c.lessons.may(message) {
		return !wantLessons
	}
	return !c.known || c.silent.match(message)
}

// formSet finds the form that a message fits.
type formSet struct {
	heads    heads // of prefixed
	prefixed []*compiledForm
	anchors  []anchored    // of forms that start with a free text
	free     []anchorGroup // the same, by the bytes that they are found by
}

// anchorGroup are forms that start with a free text, and hold a literal with the same
// rare byte: one pass over a message finds them all.
type anchorGroup struct {
	rare    byte
	anchors []anchored
}

// anchored are forms that hold the same literal.
type anchored struct {
	anchor []byte
	at     int // where the rare byte stands in it
	forms  []*compiledForm
}

type compiledForm struct {
	kind      *Kind // nil for a cause
	template  *template
	prefix    []byte
	anchor    []byte
	set       func(*Event) // nil for none
	component []byte       // of all classes that write it, nil where they differ
}

// compiled returns the table, made at the first call.
var compiled = sync.OnceValues(func() (*table, error) { return compileTable(Kinds, lessons, causes, silentText) })

func compileTable(kinds, lessons []Kind, causes []Form, silentText string) (*table, error) {
	t := &table{rocksDB: &classForms{component: []byte(rocksDB)}, anyone: &classForms{}, firmly: &classForms{}}
	classes := map[string]*classForms{}
	for i := range failureReasons {
		failureReasons[i].value = []byte(failureReasons[i].name)
	}
	for i := range kinds {
		if err := t.addKind(&kinds[i], classes); err != nil {
			return nil, err
		}
	}
	for i := range lessons {
		lessons[i].lesson = true
		if err := t.addKind(&lessons[i], classes); err != nil {
			return nil, err
		}
	}
	if err := addSilent(classes, silentText); err != nil {
		return nil, err
	}
	for i := range kinds {
		switch kinds[i].Name {
		case "checkpoint_statistics":
			t.statistics = &kinds[i]
		case "backpressure_sampled":
			t.backPressure = &kinds[i]
		case "metric_reported":
			t.metric = &kinds[i]
		case "unrecognised":
			t.unrecognised = &kinds[i]
		}
	}
	for _, form := range causes {
		f, err := compileForm(nil, form)
		if err != nil {
			return nil, fmt.Errorf("cause %q: %w", form.Text, err)
		}
		t.causes.add(f)
	}
	for _, forms := range append(slices.Collect(maps.Values(classes)), t.rocksDB, t.anyone, t.firmly) {
		if err := errors.Join(forms.forms.group(), forms.lessons.group()); err != nil {
			return nil, err
		}
	}
	t.classes = newClassIndex(classes)
	return t, errors.Join(t.inTrace.group(), t.causes.group())
}

func (t *table) addKind(kind *Kind, classes map[string]*classForms) error {
	kind.name = []byte(kind.Name)
	if kind.reason = reasonByName(kind.Reason); kind.Reason != "" && kind.reason == nil {
		return fmt.Errorf("%s: no reason %s", kind.Name, kind.Reason)
	}
	for _, form := range kind.Forms {
		if slices.Contains(form.By, restAPI) {
			continue // an answer is told by its keys
		}
		if slices.Contains(form.By, slf4jReporter) { // whose lines have no header of their own
			classes[slf4jReporter.Names[0]] = &classForms{report: true}
			continue
		}
		f, err := compileForm(kind, form)
		if err != nil {
			return fmt.Errorf("%s: %q: %w", kind.Name, form.Text, err)
		}
		switch {
		case len(form.By) == 0:
			t.inTrace.add(f)
			continue
		case slices.Contains(form.By, rocksDBLog):
			t.rocksDB.forms.add(f)
			continue
		case !kind.lesson:
			t.anyone.forms.add(f)
			if len(f.prefix) > 0 {
				t.firmly.forms.add(f)
			}
		}
		f.component = []byte(form.By[0].Component)
		for _, class := range form.By {
			if class.Component != form.By[0].Component {
				f.component = nil
			}
			for _, name := range class.Names {
				if classes[name] == nil {
					classes[name] = &classForms{component: []byte(class.Component)}
				}
				if kind.lesson {
					classes[name].lessons.add(f)
				} else {
					classes[name].forms.add(f)
				}
				classes[name].known = classes[name].known || !kind.lesson
				classes[name].teaches = !classes[name].known
			}
		}
	}
	return nil
}

func compileForm(kind *Kind, form Form) (*compiledForm, error) {
	tmpl, err := compile(form.Text)
	if err != nil {
		return nil, err
	}
	f := &compiledForm{kind: kind, template: tmpl, prefix: tmpl.prefix(), anchor: tmpl.anchor()}
	if form.Set != "" {
		name, value, _ := strings.Cut(form.Set, "=")
		text := []byte(value)
		h, err := lookUpHole(name)
		if err != nil {
			return nil, err
		}
		f.set = func(e *Event) { h.fill(e, text) }
	}
	return f, nil
}

// heads finds literals by their first bytes.
type heads struct {
	first [256]uint16 // by a hash of the first four bytes: index in list, counted from 1
	list  []head
}

type head struct {
	value, mask uint64 // of the first eight bytes
	next        uint16 // with the same hash, as in heads.first
}

// minHead is how long a literal must be to be found by its head.
const minHead = 4

func headHash(s []byte) int {
	return int(binary.LittleEndian.Uint32(s) * 0x9e3779b1 >> 24)
}

func (h *heads) add(literal []byte) {
	var b [8]byte
	mask := uint64(math.MaxUint64)
	if n := copy(b[:], literal); n < len(b) {
		mask >>= 8 * (len(b) - n)
	}
	h.list = append(h.list, head{value: binary.LittleEndian.Uint64(b[:]), mask: mask})
	at := &h.first[headHash(literal)]
	for *at != 0 {
		at = &h.list[*at-1].next
	}
	*at = uint16(len(h.list))
}

// find returns the first literal that a message can start with, and next the one behind
// it; -1 for none.
func (h *heads) find(msg []byte) int {
	if len(msg) < minHead {
		return -1
	}
	return h.from(h.first[headHash(msg)], msg)
}

func (h *heads) next(msg []byte, i int) int { return h.from(h.list[i].next, msg) }

func (h *heads) from(at uint16, msg []byte) int {
	if at == 0 {
		return -1
	}
	var b [8]byte
	copy(b[:], msg)
	first := binary.LittleEndian.Uint64(b[:])
	for ; at != 0; at = h.list[at-1].next {
		if head := &h.list[at-1]; first&head.mask == head.value {
			return int(at) - 1
		}
	}
	return -1
}

func (s *formSet) add(f *compiledForm) {
	if len(f.prefix) >= minHead {
		s.prefixed = append(s.prefixed, f)
		s.heads.add(f.prefix)
		return
	}
	for i := range s.anchors {
		if bytes.Equal(s.anchors[i].anchor, f.anchor) {
			s.anchors[i].forms = append(s.anchors[i].forms, f)
			return
		}
	}
	s.anchors = append(s.anchors, anchored{anchor: f.anchor, forms: []*compiledForm{f}})
}

// startLike reports whether a form can start with the first eight bytes of a literal,
// or the literal is too short to say.
func (s *formSet) startLike(literal []byte) bool {
	const enough = 8
	if len(literal) < enough {
		return true
	}
	same := func(f *compiledForm) bool {
		n := min(len(f.prefix), enough)
		return n > 0 && string(f.prefix[:n]) == string(literal[:n])
	}
	return slices.ContainsFunc(s.prefixed, same) ||
		slices.ContainsFunc(s.anchors, func(a anchored) bool { return slices.ContainsFunc(a.forms, same) })
}

// group groups the anchors, so that few passes over a message find all of them: by the
// byte that most of them have, of those that are not in every message.
func (s *formSet) group() error {
	s.free = nil
	left := slices.Clone(s.anchors)
	for len(left) > 0 {
		best, covered := byte(0), 0
		for c := 0; c < 256; c++ {
			n := 0
			for _, a := range left {
				if bytes.IndexByte(a.anchor, byte(c)) >= 0 {
					n++
				}
			}
			if rank(byte(c)) >= rank('-') && (n > covered || n == covered && rank(byte(c)) > rank(best)) {
				best, covered = byte(c), n
			}
		}
		if covered == 0 {
			best = left[0].anchor[rarest(left[0].anchor)]
		}
		group := anchorGroup{rare: best}
		left = slices.DeleteFunc(left, func(a anchored) bool {
			a.at = bytes.IndexByte(a.anchor, best)
			if a.at >= 0 {
				group.anchors = append(group.anchors, a)
			}
			return a.at >= 0
		})
		if len(group.anchors) > maxAnchors {
			return fmt.Errorf("more than %d forms with %q", maxAnchors, best)
		}
		s.free = append(s.free, group)
	}
	return nil
}

// maxAnchors bounds the anchors of a group, which has a bit for each.
const maxAnchors = 64

// frequent are the bytes of log messages from the most to the least frequent, counted
// over the messages of test/logs; others are rarer still.
const frequent = "e atocrindfs021lb7p63k9/h548.gm-uS,y:()=_DNAELCITwRvOFjxB#PU"

// rank is the place of a byte in frequent: the higher, the rarer.
func rank(c byte) int {
	if i := strings.IndexByte(frequent, c); i >= 0 {
		return i
	}
	return len(frequent)
}

// rarest returns where the rarest byte of a literal stands.
func rarest(literal []byte) int {
	best := 0
	for i, c := range literal {
		if rank(c) > rank(literal[best]) {
			best = i
		}
	}
	return best
}

// match fills the event from the form that the message fits, and reports whether
// there is one.
func (s *formSet) match(msg []byte, e *Event) bool {
	if len(msg) == 0 {
		return false
	}
	for i := s.heads.find(msg); i >= 0; i = s.heads.next(msg, i) {
		if f := s.prefixed[i]; bytes.HasPrefix(msg, f.prefix) && f.match(msg, e) {
			return true
		}
	}
	for i := range s.free {
		if s.free[i].match(msg, e) {
			return true
		}
	}
	return false
}

// may reports whether a message can fit a form: it starts with one's literal, or holds
// the one of another. Most messages do not.
func (s *formSet) may(msg []byte) bool {
	for i := s.heads.find(msg); i >= 0; i = s.heads.next(msg, i) {
		if bytes.HasPrefix(msg, s.prefixed[i].prefix) {
			return true
		}
	}
	for i := range s.free {
		g := &s.free[i]
		for from := 0; ; from++ {
			i := bytes.IndexByte(msg[from:], g.rare)
			if i < 0 {
				break
			}
			from += i
			for j := range g.anchors {
				if start := from - g.anchors[j].at; start >= 0 && bytes.HasPrefix(msg[start:], g.anchors[j].anchor) {
					return true
				}
			}
		}
	}
	return false
}

func (g *anchorGroup) match(msg []byte, e *Event) bool {
	tried := uint64(0) // bits of anchors: a form is tried once
	for from := 0; ; from++ {
		i := bytes.IndexByte(msg[from:], g.rare)
		if i < 0 {
			return false
		}
		from += i
		for j := range g.anchors {
			a := &g.anchors[j]
			if start := from - a.at; start < 0 || tried&(1<<j) != 0 || !bytes.HasPrefix(msg[start:], a.anchor) {
				continue
			}
			tried |= 1 << j
			for _, f := range a.forms {
				if f.match(msg, e) {
					return true
				}
			}
		}
	}
}

func (f *compiledForm) match(msg []byte, e *Event) bool {
	if !f.template.match(msg, e) {
		return false
	}
	f.apply(e)
	return true
}

// apply gives the event what every line of the form means.
func (f *compiledForm) apply(e *Event) {
	e.Kind = f.kind
	e.SetText(Component, f.component)
	if f.set != nil {
		f.set(e)
	}
}
