package parsers

import (
	"slices"
	"strings"
	"testing"
)

// silentStatement is a line of silent.txt, with the short names of its classes.
type silentStatement struct {
	classes []string
	text    string
}

func silentStatements() []silentStatement {
	var all []silentStatement
	var classes []string
	for line := range strings.Lines(silentText) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[' && line[len(line)-1] == ']':
			classes = strings.Fields(line[1 : len(line)-1])
		default:
			all = append(all, silentStatement{classes, line})
		}
	}
	return all
}

// writtenForm is a form as one class writes it, with a message that fits it.
type writtenForm struct {
	class   string
	form    Form
	example string
	lesson  bool
}

func writtenForms(t testing.TB) []writtenForm {
	t.Helper()
	var all []writtenForm
	for i, kinds := range [][]Kind{Kinds, lessons} {
		for _, kind := range kinds {
			for _, form := range kind.Forms {
				for _, class := range form.By {
					for _, name := range class.Names {
						all = append(all, writtenForm{name, form, exampleOf(t, form), i == 1})
					}
				}
			}
		}
	}
	return all
}

// exampleOf fills the holes of a form.
func exampleOf(t testing.TB, form Form) string {
	t.Helper()
	return placeholder.ReplaceAllStringFunc(strings.TrimRight(form.Text, " "), func(name string) string {
		name, words, keepWords := strings.Cut(strings.Trim(name, "{}"), ":")
		if keepWords {
			return words
		}
		h, err := lookUpHole(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range plainValues {
			if v := []byte(value); (h.scan == nil || h.scan(v) == len(v)) && (h.valid == nil || h.valid(v)) {
				return value
			}
		}
		t.Fatalf("no value for {%s}", name)
		return ""
	})
}

// plainValues are values such that each hole takes one of them.
var plainValues = []string{"x1", "17", testJob, testAttempt, "Map (1/2)#0"}

// TestSilent: a statement of silent.txt is no event and no lesson of its classes; each
// stands there once, in order.
func TestSilent(t *testing.T) {
	table, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string][]string{} // by class: its forms as silent.txt would have them
	for _, f := range writtenForms(t) {
		text := placeholder.ReplaceAllStringFunc(f.form.Text, func(hole string) string {
			if _, words, ok := strings.Cut(hole, ":"); ok {
				return strings.TrimSuffix(words, "}")
			}
			return "{}"
		})
		forms[f.class] = append(forms[f.class], strings.TrimSuffix(text, "."))
	}
	seen := map[string]bool{}
	before := silentStatement{}
	for _, s := range silentStatements() {
		if slices.Equal(s.classes, before.classes) && s.text <= before.text {
			t.Errorf("%v: %q is not in order", s.classes, s.text)
		}
		before = s
		text := strings.TrimSuffix(s.text, ".")
		for _, short := range s.classes {
			if key := short + text; seen[key] {
				t.Errorf("[%s] %q is there twice", short, s.text)
			} else {
				seen[key] = true
			}
			for _, slot := range table.classes.slots {
				if !strings.HasSuffix(string(slot.name), "."+short) {
					continue
				}
				if !slot.forms.known {
					t.Errorf("[%s] writes no events: all that it says is silent", short)
				}
				if slices.Contains(forms[string(slot.name)], text) {
					t.Errorf("[%s] %q is an event", short, s.text)
				}
				for _, value := range plainValues {
					var e Event
					message := []byte(strings.ReplaceAll(s.text, "{}", value))
					if slot.forms.forms.match(message, &e) || slot.forms.lessons.match(message, &e) {
						t.Errorf("[%s] %q is an event %s", short, message, e.Kind.Name)
					}
					if !slot.forms.silent.match(message) {
						t.Errorf("[%s] %q does not match itself", short, message)
					}
				}
			}
		}
	}
}

// TestSilent_leavesEvents: no statement of silent.txt takes the line of an event that is
// damaged, nor one with another word in it.
func TestSilent_leavesEvents(t *testing.T) {
	table, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range writtenForms(t) {
		forms := table.classes.find([]byte(f.class))
		if forms == nil || f.lesson || forms.report {
			continue
		}
		var e Event
		if !forms.forms.match([]byte(f.example), &e) {
			t.Errorf("%s: %q is no event", f.class, f.example)
		}
		damaged := []string{strings.ReplaceAll(f.example, " ", "  ")}
		for i, c := range f.example {
			damaged = append(damaged, f.example[:i])
			if c == ' ' {
				damaged = append(damaged, f.example[:i]+f.example[i+1:])
			}
		}
		for _, message := range damaged {
			message := []byte(strings.TrimSpace(message))
			if !forms.forms.match(message, &e) && forms.forms.matchDamaged(message, &e) && forms.silent.match(message) {
				t.Errorf("%s: %q is silent, and the damaged %q", f.class, message, f.form.Text)
			}
		}
		for _, literal := range placeholder.Split(f.form.Text, -1) {
			for _, word := range strings.Fields(literal) {
				message := []byte(strings.Replace(f.example, word, "other", 1))
				if !forms.forms.match(message, &e) && forms.silent.match(message) {
					t.Errorf("%s: %q is silent, which may be a %q with another word", f.class, message, f.form.Text)
				}
			}
		}
	}
}
