package parsers

import (
	"bytes"
	"fmt"
	"strings"
)

// maxHoles bounds the holes of one template.
const maxHoles = 16

// template is a compiled form: segments of literals and of values with a shape of
// their own, between free texts. The first place at which a segment fits ends the
// free text before it (the last, for a task's name), and is not reconsidered: a match
// costs one search for each free text.
type template struct {
	segments []segment
	fills    []func(*Event, []byte) // by hole; nil for a hole that is not kept
	keeps    bool                   // some hole is kept
	// dot says that Flink ends the sentence with a dot, which a line may lack.
	dot bool
}

// segment is a run of elements without a free text between them.
type segment struct {
	free     int               // hole of the free text before the segment; -1 for none
	valid    func([]byte) bool // what the free text must be; nil for anything
	last     bool              // the free text ends at the last place that fits
	first    literal           // of the elements
	elements []element
}

// element is a literal or a value with a shape.
type element struct {
	literal []byte             // matched as it is, unless scan is set
	scan    func(s []byte) int // length of the value
	hole    int                // -1 for a literal that is not kept
}

type textRange struct{ start, end int }

// compile reads a template's text: see [Form.Text].
func compile(text string) (*template, error) {
	t := &template{}
	text, t.dot = strings.CutSuffix(strings.TrimRight(text, " "), ".") // a message has no blanks at its end
	current := segment{free: -1}
	for text != "" {
		literal, rest, hasHole := strings.Cut(text, "{")
		if literal != "" {
			current.elements = append(current.elements, element{literal: []byte(literal), hole: -1})
		}
		if !hasHole {
			break
		}
		name, rest, closed := strings.Cut(rest, "}")
		if !closed {
			return nil, fmt.Errorf("the brace before %q is not closed", rest)
		}
		text = rest
		name, words, keepWords := strings.Cut(name, ":")
		h, err := lookUpHole(name)
		if err != nil {
			return nil, err
		}
		index := len(t.fills)
		if index == maxHoles {
			return nil, fmt.Errorf("more than %d holes", maxHoles)
		}
		t.fills = append(t.fills, h.fill)
		t.keeps = t.keeps || h.fill != nil
		switch {
		case keepWords:
			current.elements = append(current.elements, element{literal: []byte(words), hole: index})
		case h.scan != nil:
			current.elements = append(current.elements, element{scan: h.scan, hole: index})
		case current.free >= 0 && len(current.elements) == 0:
			return nil, fmt.Errorf("two free texts with nothing between them at {%s}", name)
		default:
			if current.free >= 0 || len(current.elements) > 0 {
				t.segments = append(t.segments, current)
			}
			current = segment{free: index, valid: h.valid, last: h.last}
		}
		if current.free >= 0 && len(current.elements) == 1 && current.elements[0].scan != nil {
			return nil, fmt.Errorf("no literal between a free text and {%s}", name)
		}
	}
	t.segments = append(t.segments, current)
	for i := range t.segments {
		if s := &t.segments[i]; len(s.elements) > 0 && s.elements[0].literal != nil {
			s.first = newLiteral(s.elements[0].literal)
		}
	}
	return t, nil
}

// literal is a text that is looked for by its rarest byte: blanks are everywhere.
type literal struct {
	text []byte
	rare int // where the rarest byte stands in it
}

func newLiteral(text []byte) literal { return literal{text, rarest(text)} }

// index returns where the literal stands in msg, -1 for nowhere.
func (l *literal) index(msg []byte) int {
	for from := l.rare; from < len(msg); {
		i := bytes.IndexByte(msg[from:], l.text[l.rare])
		if i < 0 {
			return -1
		}
		if start := from + i - l.rare; bytes.HasPrefix(msg[start:], l.text) {
			return start
		}
		from += i + 1
	}
	return -1
}

// lookUpHole finds a hole by its name; "a,b" fills two fields with one value.
func lookUpHole(name string) (hole, error) {
	if h, ok := holes[name]; ok {
		return h, nil
	}
	first, second, two := strings.Cut(name, ",")
	f, ok := FieldByName(first)
	if !ok {
		return hole{}, fmt.Errorf("{%s} is no hole and no field", first)
	}
	h := holeFor(f)
	if two {
		other, err := lookUpHole(second)
		if err != nil {
			return hole{}, err
		}
		fill := h.fill
		h.fill = func(e *Event, v []byte) { fill(e, v); other.fill(e, v) }
	}
	return h, nil
}

// prefix returns the literal that every match starts with, if there is one.
func (t *template) prefix() []byte {
	if first := t.segments[0]; first.free < 0 && len(first.elements) > 0 && first.elements[0].scan == nil {
		return first.elements[0].literal
	}
	return nil
}

// anchor returns a literal that every match holds: the first that is long enough to be
// rare, so that forms which go on differently have the same, else the longest.
func (t *template) anchor() []byte {
	var longest []byte
	for _, s := range t.segments {
		for _, el := range s.elements {
			if el.scan != nil || len(el.literal) <= len(longest) {
				continue
			}
			if longest = el.literal; len(longest) >= 8 {
				return longest
			}
		}
	}
	return longest
}

// match reports whether the message fits, and fills the event if it does.
func (t *template) match(msg []byte, e *Event) bool {
	var ranges [maxHoles]textRange
	pos := 0
	for i := range t.segments {
		s := &t.segments[i]
		last := i == len(t.segments)-1
		switch {
		case s.free < 0:
			end := s.at(msg, pos, &ranges)
			if end < 0 || last && !t.atEnd(msg, end) {
				return false
			}
			pos = end
		case len(s.elements) == 0:
			end := t.endOfText(msg, pos)
			if s.valid != nil && !s.valid(msg[pos:end]) {
				return false
			}
			ranges[s.free] = textRange{pos, end}
		default:
			if pos = t.search(msg, pos, i, &ranges); pos < 0 {
				return false
			}
		}
	}
	if t.keeps {
		t.fill(msg, &ranges, e)
	}
	return true
}

// search matches the segment i and the free text before it, which starts at start. It
// returns where the segment ends, -1 where it is not found.
func (t *template) search(msg []byte, start, i int, ranges *[maxHoles]textRange) int {
	s := &t.segments[i]
	fits := func(at int) int {
		end := s.at(msg, at, ranges)
		if end < 0 || i == len(t.segments)-1 && !t.atEnd(msg, end) || s.valid != nil && !s.valid(msg[start:at]) {
			return -1
		}
		ranges[s.free] = textRange{start, at}
		return end
	}
	if s.last {
		return s.searchLast(msg, start, fits)
	}
	for from := start; ; from++ {
		at := s.first.index(msg[from:])
		if at < 0 {
			return -1
		}
		from += at
		if end := fits(from); end >= 0 {
			return end
		}
	}
}

// searchLast tries the places of the segment's literal from the last one on. There is
// one in almost every message.
func (s *segment) searchLast(msg []byte, start int, fits func(at int) int) int {
	at := s.first.index(msg[start:])
	if at < 0 {
		return -1
	}
	if first := start + at; s.first.index(msg[first+1:]) < 0 {
		return fits(first)
	}
	for to := len(msg); ; {
		last := bytes.LastIndex(msg[start:to], s.first.text)
		if last < 0 {
			return -1
		}
		if end := fits(start + last); end >= 0 {
			return end
		}
		to = start + last + len(s.first.text) - 1
	}
}

func (t *template) fill(msg []byte, ranges *[maxHoles]textRange, e *Event) {
	for i, fill := range t.fills {
		if fill != nil && ranges[i].end > ranges[i].start {
			fill(e, msg[ranges[i].start:ranges[i].end])
		}
	}
}

// at matches the segment's elements at pos and returns where they end, -1 for none.
func (s *segment) at(msg []byte, pos int, ranges *[maxHoles]textRange) int {
	for i := range s.elements {
		el := &s.elements[i]
		n := len(el.literal)
		if el.scan != nil {
			if n = el.scan(msg[pos:]); n == 0 {
				return -1
			}
		} else if !bytes.HasPrefix(msg[pos:], el.literal) {
			return -1
		}
		if el.hole >= 0 {
			ranges[el.hole] = textRange{pos, pos + n}
		}
		pos += n
	}
	return pos
}

// atEnd reports whether nothing but a final dot is left of the message. (Flink
// writes two where an argument ends in one.)
func (t *template) atEnd(msg []byte, pos int) bool {
	rest := msg[pos:]
	return len(rest) == 0 || t.dot && (string(rest) == "." || string(rest) == "..")
}

// endOfText returns where a free text at the end of the message ends: before Flink's
// final dot.
func (t *template) endOfText(msg []byte, pos int) int {
	if end := len(msg); !t.dot || end == pos || msg[end-1] != '.' {
		return end
	}
	return len(msg) - 1
}
