package parsers

import (
	"bytes"
	"encoding/binary"

	"flink-loki/parsers/internal/ascii"
	"flink-loki/parsers/layout"
)

// formsOf returns the forms that can stand behind a header, nil for none.
func (t *table) formsOf(l *layout.Line) *classForms {
	switch {
	case l.RocksDB:
		return t.rocksDB
	case l.Logger == nil && l.Apart:
		return t.anyone
	case l.Logger == nil:
		return t.firmly
	}
	return t.classes.find(l.Logger)
}

// classIndex finds a class by its logger. Most lines are of classes that are not in it,
// so a look costs a multiplication: the hash takes the last eight bytes.
type classIndex struct {
	slots []classSlot // open addressing, a power of two, at most a quarter full
	// wanted excludes most loggers: those of the classes, and of those that write events.
	wanted, telling layout.Loggers
	short           []classSlot // classes with names of less than eight bytes
}

type classSlot struct {
	tail  uint64
	name  []byte
	class int // length of the name without its packages
	forms *classForms
	// loose is for loggers that may be this class and may be another: a bare class name,
	// or another package of the same project. Only whole sentences count.
	loose *classForms
}

// tailLen is how many bytes at a logger's end are hashed.
const tailLen = 8

func newClassIndex(classes map[string]*classForms) classIndex {
	size := 1
	for size < 8*len(classes) {
		size *= 2
	}
	x := classIndex{slots: make([]classSlot, size)}
	for name, forms := range classes {
		slot := classSlot{name: []byte(name), class: len(name) - lastDot(name) - 1, forms: forms, loose: &classForms{component: forms.component, forms: forms.forms, lessons: forms.lessons, report: forms.report}}
		x.add(slot, name)
		if class := name[lastDot(name):]; len(class) <= tailLen { // with the dot
			// The packages before a short name are in the hash: o.a.f.r.t.Task
			abbreviated := abbreviate(name)
			if abbreviated[len(abbreviated)-tailLen:] != name[len(name)-tailLen:] {
				x.add(slot, abbreviated)
			}
			x.short = append(x.short, slot)
		}
	}
	return x
}

func lastDot(name string) int { return bytes.LastIndexByte([]byte(name), '.') }

// abbreviate shortens the packages of a class to one letter, as log4j 2's %c{1.} does.
func abbreviate(name string) string {
	var b []byte
	for from := 0; ; {
		dot := bytes.IndexByte([]byte(name[from:]), '.')
		if dot < 0 {
			return string(append(b, name[from:]...))
		}
		b = append(b, name[from], '.')
		from += dot + 1
	}
}

func (x *classIndex) add(slot classSlot, by string) {
	slot.tail = binary.LittleEndian.Uint64([]byte(by[len(by)-tailLen:]))
	i := x.hash(slot.tail)
	x.wanted.Add([]byte(by))
	if !slot.forms.teaches {
		x.telling.Add([]byte(by))
	}
	for x.slots[i].forms != nil {
		i = (i + 1) & (len(x.slots) - 1)
	}
	x.slots[i] = slot
}

func (x *classIndex) hash(tail uint64) int {
	return int(tail*0x9e3779b97f4a7c15>>40) & (len(x.slots) - 1)
}

// find returns the forms of the class that a logger stands for, nil for one that has
// none.
func (x *classIndex) find(logger []byte) *classForms {
	if len(logger) < tailLen {
		return best(x.short, logger)
	}
	tail := binary.LittleEndian.Uint64(logger[len(logger)-tailLen:])
	if !x.wanted.May(logger) {
		return nil
	}
	i := x.hash(tail)
	var found *classForms
	for ; x.slots[i].forms != nil; i = (i + 1) & (len(x.slots) - 1) {
		if x.slots[i].tail != tail {
			continue
		}
		if bytes.Equal(x.slots[i].name, logger) {
			return x.slots[i].forms
		}
		if forms := x.slots[i].match(logger); forms != nil && (found == nil || forms.known) {
			found = forms
		}
	}
	return found
}

func best(slots []classSlot, logger []byte) *classForms {
	var found *classForms
	for i := range slots {
		if forms := slots[i].match(logger); forms != nil && (found == nil || forms.known) {
			found = forms
		}
	}
	return found
}

// match returns the forms of the slot's class if the logger can stand for it: the class
// itself with its packages shortened (o.a.f.r.c.CheckpointCoordinator), or without some
// at the front (checkpoint.CheckpointCoordinator), or without any, or the same class in
// another package of the same project, which it was in once.
func (s *classSlot) match(logger []byte) *classForms {
	start := len(logger) - s.class
	if start < 0 || start > 0 && logger[start-1] != '.' || !bytes.HasSuffix(s.name, logger[start:]) {
		return nil
	}
	packages, shown := s.name[:len(s.name)-s.class-1], logger[:max(start-1, 0)]
	if len(shown) == 0 || bytes.HasSuffix(s.name, logger) && s.name[len(s.name)-len(logger)-1] == '.' {
		return s.loose
	}
	for segment := 0; ; segment++ {
		want, restWant, more := bytes.Cut(packages, []byte("."))
		got, restGot, moreGot := bytes.Cut(shown, []byte("."))
		if same := len(got) > 0 && bytes.HasPrefix(want, got); !same || more != moreGot {
			if segment >= projectSegments {
				return s.loose
			}
			return nil
		}
		if !more {
			return s.forms
		}
		packages, shown = restWant, restGot
	}
}

// projectSegments is how many segments of a package name the project: org.apache.flink.
const projectSegments = 3

// isKnown reports whether lines of a logger are wanted.
func (x *classIndex) isKnown(logger []byte) bool {
	return len(logger) > 0 && ascii.IsAlpha(logger[0]) && x.find(logger) != nil
}
