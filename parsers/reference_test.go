package parsers

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"flink-loki/parsers/layout"
)

// The reference is a matcher as one would write it first: a regular expression for each
// form, tried one after the other. The fast one must find the same.

type referenceForm struct {
	kind    *Kind
	form    Form
	pattern *regexp.Regexp
	holes   []hole // by group; a zero hole for one that is not kept
}

// reference are the forms by logger.
type reference map[string][]referenceForm

const (
	referenceID   = `[0-9a-f]{32}`
	referenceInt  = `(?:-?\d+|\{\}|[A-Z_]{3,})`
	referenceExec = referenceID + `(?:_` + referenceID + `_\d+_\d+)?`
	referenceTask = `.*\(\d+/\d+\)(?:#\d+)?(?: \(` + referenceExec + `\))?\s*`
)

// referenceHole returns what may stand in a hole.
func referenceHole(name string) string {
	if name == "" {
		return `.*?`
	}
	first, _, _ := strings.Cut(name, ",")
	switch first {
	case "task":
		return referenceTask
	case "number", "seconds", "microseconds":
		return referenceInt
	case "channel":
		return `(?:\d+|InputChannelInfo\{[^}]*\})`
	case "bare_host":
		return `[\w.:-]+`
	case "flush_started", "flush_finished", "compaction_started", "compaction_finished":
		return `.*"event": "` + first + `".*`
	}
	f, ok := FieldByName(first)
	if _, special := holes[first]; ok && !special {
		switch Fields[f].Type {
		case ID:
			return referenceID
		case AttemptID:
			return referenceExec
		case Int:
			return referenceInt
		case Number:
			return referenceInt + `(?:\.\d+)?`
		case Bool, Word:
			return `\w+`
		}
	}
	return `.*?`
}

var templateHole = regexp.MustCompile(`\{[^}]*\}`)

// newReference makes the reference of some kinds.
func newReference(t testing.TB, kinds ...[]Kind) reference {
	t.Helper()
	ref := reference{}
	for _, kind := range slices.Concat(kinds...) {
		for _, form := range kind.Forms {
			if slices.Contains(form.By, restAPI) || slices.Contains(form.By, slf4jReporter) {
				continue
			}
			text, end := strings.TrimRight(form.Text, " "), "$"
			if strings.HasSuffix(text, ".") {
				text, end = strings.TrimSuffix(text, "."), `\.{0,2}$`
			}
			f := referenceForm{kind: &kind, form: form, holes: []hole{{}}}
			pattern := `(?s)^`
			last := 0
			for _, at := range templateHole.FindAllStringIndex(text, -1) {
				pattern += regexp.QuoteMeta(text[last:at[0]])
				last = at[1]
				name, words, keepWords := strings.Cut(text[at[0]+1:at[1]-1], ":")
				h, err := lookUpHole(name)
				if err != nil {
					t.Fatal(err)
				}
				f.holes = append(f.holes, h)
				if at[1] == len(text) && h.scan == nil && !keepWords && end != "$" {
					end = `\.?$` // a text may end in a dot of its own
				}
				if keepWords {
					pattern += "(" + regexp.QuoteMeta(words) + ")"
				} else {
					pattern += "(" + referenceHole(name) + ")"
				}
			}
			f.pattern = regexp.MustCompile(pattern + regexp.QuoteMeta(text[last:]) + end)
			for _, class := range form.By {
				if class == rocksDBLog {
					ref[""] = append(ref[""], f)
				}
				for _, name := range class.Names {
					ref[name] = append(ref[name], f)
				}
			}
		}
	}
	return ref
}

// match returns the events that a message can be: of every form that it fits.
func (ref reference) match(logger string, message []byte) []*Event {
	var events []*Event
	for _, f := range ref[logger] {
		groups := f.pattern.FindSubmatch(message)
		if groups == nil {
			continue
		}
		e := &Event{Kind: f.kind}
		for i, group := range groups {
			if f.holes[i].fill != nil && len(group) > 0 {
				f.holes[i].fill(e, group)
			}
		}
		if f.form.Set != "" {
			name, value, _ := strings.Cut(f.form.Set, "=")
			h, _ := lookUpHole(name)
			h.fill(e, []byte(value))
		}
		events = append(events, e)
	}
	return events
}

// describe writes an event's kind and fields, the component aside.
func describe(e *Event) string {
	e.Drop(Component)
	return e.Kind.Name + " " + string(e.AppendLogfmt(nil))
}

// compareWithReference reports how the fast matcher differs.
func compareWithReference(parser *Parser, ref reference, logger string, message []byte) string {
	forms := parser.table.rocksDB
	if logger != "" {
		forms = parser.table.classes.find([]byte(logger))
	}
	fast := Event{}
	found := forms.forms.match(message, &fast) || forms.lessons.match(message, &fast)
	want := ref.match(logger, message)
	switch {
	case found != (len(want) > 0):
		names := []string{}
		for _, e := range want {
			names = append(names, describe(e))
		}
		return fmt.Sprintf("found is %v, the reference has %q", found, names)
	case !found:
		return ""
	case !forms.forms.may(message) && !forms.lessons.may(message):
		return "excluded by the first look"
	}
	got := describe(&fast)
	for _, e := range want {
		if describe(e) == got {
			return ""
		}
	}
	return fmt.Sprintf("got\n%s\nthe reference has\n%s", got, describe(want[0]))
}

// TestReference_logs compares on the messages of all logs.
func TestReference_logs(t *testing.T) {
	parser, ref := newParser(t), newReference(t, Kinds, lessons)
	files, err := filepath.Glob(logsDir + "/*/*/*")
	if err != nil {
		t.Fatal(err)
	}
	lines, found := 0, 0
	for _, file := range files {
		log, err := os.ReadFile(file)
		if err != nil || !strings.HasSuffix(strings.ToLower(file), "log") {
			continue
		}
		for line := range bytes.Lines(log) {
			l, ok := layout.Shipped(bytes.TrimRight(line, "\n"))
			if !ok {
				l, ok = layout.Parse(bytes.TrimRight(line, "\n"), parser.table.classes.isKnown)
			}
			if !ok || ref[string(l.Logger)] == nil || !l.RocksDB && l.Logger == nil {
				continue
			}
			lines++
			message := l.Message()
			if fault := compareWithReference(parser, ref, string(l.Logger), message); fault != "" {
				t.Fatalf("%s: %s\n%s", file, message, fault)
			}
			if len(ref.match(string(l.Logger), message)) > 0 {
				found++
			}
		}
	}
	if found < 5000 {
		t.Errorf("%d messages of %d fit", found, lines)
	}
	t.Logf("%d messages, of which %d fit a form", lines, found)
}

// TestReference_generated compares on the statements of the catalogue, with plain and
// hostile values, and with what can happen to a line.
func TestReference_generated(t *testing.T) {
	parser, ref := newParser(t), newReference(t, Kinds, lessons)
	random := rand.New(rand.NewPCG(1, 2))
	messages, found := 0, 0
	for _, s := range catalogue(t) {
		loggers := s.loggers
		if strings.HasPrefix(s.id, "rocksdb") {
			loggers = []string{""}
		}
		if s.event == "" || strings.HasPrefix(s.id, "exc-") {
			continue
		}
		for n := range rounds {
			message, _ := render(t, s, n)
			message, _, _ = strings.Cut(message, "\n")
			for _, text := range append(mutations(random, message), message) {
				logger := loggers[n%len(loggers)]
				text = strings.TrimSpace(text)
				if ref[logger] == nil || text == "" || len(text) > 3000 || strings.Count(text, `event": "`) > 1 {
					continue
				}
				messages++
				if fault := compareWithReference(parser, ref, logger, []byte(text)); fault != "" {
					t.Errorf("%s (%s) %s: %q\n%s", s.id, s.versions, logger, text, fault)
				}
				if len(ref.match(logger, []byte(text))) > 0 {
					found++
				}
			}
		}
	}
	t.Logf("%d messages, of which %d fit a form", messages, found)
}

// mutations returns what can become of a message.
func mutations(random *rand.Rand, message string) []string {
	words := strings.Fields(message)
	at, other := random.IntN(len(words)), random.IntN(len(words))
	without := slices.Delete(slices.Clone(words), at, at+1)
	twice := slices.Insert(slices.Clone(words), at, words[other])
	swapped := slices.Clone(words)
	swapped[at], swapped[other] = swapped[other], swapped[at]
	cut := random.IntN(len(message))
	return []string{
		strings.Join(without, " "), strings.Join(twice, " "), strings.Join(swapped, " "), message[:cut], message[cut:],
		message + ".", strings.TrimSuffix(message, "."), message + " and more", "x" + message, message + " " + message,
		message[:cut] + string(rune('!'+random.IntN(90))) + message[cut:],
	}
}
