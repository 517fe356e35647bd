package parsers

import (
	"bytes"
	_ "embed" // silent.txt
	"fmt"
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
	silent    formSet // known statements that are neither events nor lessons
	report    bool    // lines below the header are metrics
	// known says that whatever the class writes is known: a line that fits no form is
	// damaged, or Flink has reworded it.
	known bool
}

// formSet finds the form that a message fits.
type formSet struct {
	prefixed [256][]*compiledForm // by the first byte, which every match starts with
	free     []anchorGroup        // forms that start with a free text
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

//go:embed silent.txt
var silentText string

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
	t.classes = newClassIndex(classes)
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
	return t, t.anyone.forms.check() // which has the most forms
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
				classes[name].forms.add(f)
				classes[name].known = classes[name].known || !kind.lesson
			}
		}
	}
	return nil
}

// addSilent reads silent.txt: sections of statements, each for the classes whose short
// names it has.
func addSilent(classes map[string]*classForms, text string) error {
	var section []*classForms
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[' && line[len(line)-1] == ']':
			section = nil
			for _, short := range strings.Fields(line[1 : len(line)-1]) {
				known := len(section)
				for name, forms := range classes {
					if strings.HasSuffix(name, "."+short) {
						section = append(section, forms)
					}
				}
				if len(section) == known {
					return fmt.Errorf("silent.txt: no class %s", short)
				}
			}
		default:
			f, err := compileForm(nil, Form{Text: line})
			if err != nil {
				return fmt.Errorf("silent.txt: %q: %w", line, err)
			}
			for _, forms := range section {
				forms.silent.add(f)
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

func (s *formSet) add(f *compiledForm) {
	if len(f.prefix) > 0 {
		s.prefixed[f.prefix[0]] = append(s.prefixed[f.prefix[0]], f)
		return
	}
	at := rarest(f.anchor)
	var group *anchorGroup
	for i := range s.free {
		if s.free[i].rare == f.anchor[at] {
			group = &s.free[i]
		}
	}
	if group == nil {
		s.free = append(s.free, anchorGroup{rare: f.anchor[at]})
		group = &s.free[len(s.free)-1]
	}
	for i := range group.anchors {
		if bytes.Equal(group.anchors[i].anchor, f.anchor) {
			group.anchors[i].forms = append(group.anchors[i].forms, f)
			return
		}
	}
	group.anchors = append(group.anchors, anchored{f.anchor, at, []*compiledForm{f}})
}

// maxAnchors bounds the anchors of a group, which has a bit for each.
const maxAnchors = 64

func (s *formSet) check() error {
	for _, group := range s.free {
		if len(group.anchors) > maxAnchors {
			return fmt.Errorf("more than %d forms with the rare byte %q", maxAnchors, group.rare)
		}
	}
	return nil
}

// frequent are the bytes of log messages from the most to the least frequent; others are
// rarer still.
const frequent = " etaoinsrcdlmpukghfbyvw._0123456789"

// rarest returns where the rarest byte of a literal stands.
func rarest(literal []byte) int {
	best, rank := 0, -1
	for i, c := range literal {
		r := strings.IndexByte(frequent, c)
		if r < 0 {
			r = len(frequent)
		}
		if r > rank {
			best, rank = i, r
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
	for _, f := range s.prefixed[msg[0]] {
		if bytes.HasPrefix(msg, f.prefix) && f.match(msg, e) {
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
	for _, f := range s.prefixed[msg[0]] {
		if bytes.HasPrefix(msg, f.prefix) {
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
