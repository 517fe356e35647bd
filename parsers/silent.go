package parsers

import (
	"bytes"
	_ "embed" // silent.txt
	"fmt"
	"strings"
)

//go:embed silent.txt
var silentText string

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
			for _, forms := range section {
				st := newSilentForm(line)
				st.sure = !forms.forms.startLike(st.prefix) && !forms.lessons.startLike(st.prefix)
				forms.silent.add(st)
			}
		}
	}
	return nil
}

// silentSet finds out whether a message is a known statement that is neither an event nor
// a lesson. Most lines of a class that writes events are such.
type silentSet struct {
	heads heads // of forms
	forms []silentForm
	free  []silentForm // those that start with an argument, or a word or two
}

// silentForm is a statement of silent.txt: what it has before its first argument, between
// arguments, and behind the last.
type silentForm struct {
	prefix []byte
	middle []literal
	suffix []byte // without a final dot, which a line may lack
	whole  bool   // there is no argument
	// sure says that the first eight bytes are enough: no event starts like this. What the
	// statement says further does not matter then.
	sure bool
}

// minMiddle is how long a literal between two arguments is that is looked for: a shorter
// one says nothing.
const minMiddle = 4

func newSilentForm(text string) silentForm {
	literals := strings.Split(strings.TrimRight(text, "."), "{}")
	last := len(literals) - 1
	s := silentForm{prefix: []byte(literals[0]), suffix: []byte(literals[last]), whole: last == 0}
	for _, text := range literals[min(1, last):last] {
		if len(text) >= minMiddle {
			s.middle = append(s.middle, newLiteral([]byte(text)))
		}
	}
	return s
}

func (s *silentSet) add(st silentForm) {
	if len(st.prefix) < minHead {
		s.free = append(s.free, st)
		return
	}
	s.forms = append(s.forms, st)
	s.heads.add(st.prefix)
}

// match reports whether a message is one of the statements.
func (s *silentSet) match(msg []byte) bool {
	for len(msg) > 0 && msg[len(msg)-1] == '.' {
		msg = msg[:len(msg)-1]
	}
	if len(msg) == 0 {
		return false
	}
	for i := s.heads.find(msg); i >= 0; i = s.heads.next(msg, i) {
		st := &s.forms[i]
		if st.sure || bytes.HasPrefix(msg, st.prefix) && st.matchRest(msg[len(st.prefix):]) {
			return true
		}
	}
	for i := range s.free {
		if st := &s.free[i]; bytes.HasPrefix(msg, st.prefix) && st.matchRest(msg[len(st.prefix):]) {
			return true
		}
	}
	return false
}

// matchRest matches what follows the prefix.
func (s *silentForm) matchRest(rest []byte) bool {
	if s.whole {
		return len(rest) == 0
	}
	rest, ok := bytes.CutSuffix(rest, s.suffix)
	if !ok {
		return false
	}
	for i := range s.middle {
		at := s.middle[i].index(rest)
		if at < 0 {
			return false
		}
		rest = rest[at+len(s.middle[i].text):]
	}
	return true
}
