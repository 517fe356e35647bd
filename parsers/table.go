package parsers

import (
	"bytes"
	_ "embed" // silent.txt
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// table is the compiled form of [Kinds].
type table struct {
	classes classIndex
	rocksDB *classForms
	inTrace formSet // forms without a class
	causes  formSet

	statistics, backPressure, unrecognised *Kind
}

// classForms are the forms that one class can write.
type classForms struct {
	component []byte
	forms     formSet
	silent    formSet // known statements that are neither events nor lessons
	events    bool    // the class writes events, and not only lessons
}

// formSet finds the form that a message fits.
type formSet struct {
	prefixed [256][]*compiledForm // by the first byte, which every match starts with
	free     []anchored           // forms that start with a free text
}

// anchored are forms that hold the same literal.
type anchored struct {
	anchor []byte
	forms  []*compiledForm
}

type compiledForm struct {
	kind     *Kind // nil for a cause
	template *template
	prefix   []byte
	anchor   []byte
	set      func(*Event) // nil for none
}

// compiled returns the table, made at the first call.
var compiled = sync.OnceValues(func() (*table, error) { return compileTable(Kinds, lessons, causes, silentText) })

//go:embed silent.txt
var silentText string

func compileTable(kinds, lessons []Kind, causes []Form, silentText string) (*table, error) {
	t := &table{rocksDB: &classForms{component: []byte(rocksDB)}}
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
	return t, nil
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
		f, err := compileForm(kind, form)
		if err != nil {
			return fmt.Errorf("%s: %q: %w", kind.Name, form.Text, err)
		}
		if len(form.By) == 0 {
			t.inTrace.add(f)
		}
		for _, class := range form.By {
			if class == rocksDBLog {
				t.rocksDB.forms.add(f)
			}
			for _, name := range class.Names {
				if classes[name] == nil {
					classes[name] = &classForms{component: []byte(class.Component)}
				}
				classes[name].forms.add(f)
				classes[name].events = classes[name].events || !kind.lesson
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
	if len(f.prefix) == 0 {
		for i := range s.free {
			if bytes.Equal(s.free[i].anchor, f.anchor) {
				s.free[i].forms = append(s.free[i].forms, f)
				return
			}
		}
		s.free = append(s.free, anchored{f.anchor, []*compiledForm{f}})
		return
	}
	s.prefixed[f.prefix[0]] = append(s.prefixed[f.prefix[0]], f)
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
		if !bytes.Contains(msg, s.free[i].anchor) {
			continue
		}
		for _, f := range s.free[i].forms {
			if f.match(msg, e) {
				return true
			}
		}
	}
	return false
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
	if f.set != nil {
		f.set(e)
	}
}

// formsOf returns the forms that can stand behind a header, nil for none.
func (t *table) formsOf(h *header) *classForms {
	if h.rocksDB {
		return t.rocksDB
	}
	return t.classes.find(h.logger)
}

// classIndex finds a class by its full name. Most lines are of classes that are not in
// it, so a look costs a multiplication: the hash takes length and last eight bytes.
type classIndex struct {
	slots []classSlot // open addressing, a power of two, at most a quarter full
}

type classSlot struct {
	name  string
	forms *classForms
}

func newClassIndex(classes map[string]*classForms) classIndex {
	size := 1
	for size < 4*len(classes) {
		size *= 2
	}
	x := classIndex{make([]classSlot, size)}
	for name, forms := range classes {
		i := x.slot([]byte(name))
		for x.slots[i].forms != nil {
			i = (i + 1) & (size - 1)
		}
		x.slots[i] = classSlot{name, forms}
	}
	return x
}

func (x *classIndex) slot(name []byte) int {
	tail := binary.LittleEndian.Uint64(name[len(name)-8:])
	return int((tail^uint64(len(name)))*0x9e3779b97f4a7c15>>40) & (len(x.slots) - 1)
}

// find returns the forms of a class, nil for one that has none.
func (x *classIndex) find(name []byte) *classForms {
	if len(name) < 8 {
		return nil
	}
	for i := x.slot(name); x.slots[i].forms != nil; i = (i + 1) & (len(x.slots) - 1) {
		if x.slots[i].name == string(name) {
			return x.slots[i].forms
		}
	}
	return nil
}
