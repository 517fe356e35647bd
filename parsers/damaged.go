package parsers

import (
	"bytes"

	"flink-loki/parsers/internal/ascii"
)

// Lines that were copied from web pages and documents, or cut off by a container
// runtime, do not fit their form to the letter: blanks are doubled, missing or inside
// parentheses, ids are cut short, the end is missing. Such a line still gives its event,
// with the fields that are whole. Only lines of a known class that fit no form come here.

// minMatched is how much of a form's literals a damaged line must have, in percent.
const minMatched = 60

// matchDamaged fills the event from the form that the message fits best with damage
// allowed for, and reports whether one fits well enough.
func (s *formSet) matchDamaged(msg []byte, e *Event) bool {
	if len(msg) == 0 {
		return false
	}
	var best damage
	try := func(f *compiledForm) {
		if d := f.template.damaged(msg); d.matched > best.matched {
			d.form = f
			best = d
		}
	}
	for _, f := range s.prefixed {
		if f.prefix[0] == msg[0] {
			try(f)
		}
	}
	for _, group := range s.free {
		for _, a := range group.anchors {
			for _, f := range a.forms {
				try(f)
			}
		}
	}
	if best.form == nil {
		return false
	}
	best.form.template.fill(msg, &best.ranges, e)
	best.form.apply(e)
	return true
}

// damage is how a message fits a form.
type damage struct {
	form    *compiledForm
	matched int // bytes of literals that are there; 0 where it does not fit
	ranges  [maxHoles]textRange
}

// damaged compares a message with the template, blanks aside, up to the end of either.
func (t *template) damaged(msg []byte) (d damage) {
	pos, total := 0, 0
	for i := range t.segments {
		s := &t.segments[i]
		for _, el := range s.elements {
			total += len(el.literal)
		}
		switch {
		case s.free < 0:
			if pos = s.damaged(msg, 0, &d); pos < 0 {
				return damage{}
			}
		case len(s.elements) == 0:
			end := t.endOfText(msg, pos)
			if s.valid != nil && !s.valid(bytes.TrimSpace(msg[pos:end])) {
				return damage{}
			}
			d.ranges[s.free] = trimRange(msg, pos, end)
			pos = len(msg)
		default:
			core := bytes.TrimSpace(s.elements[0].literal)
			if len(core) == 0 {
				core = s.elements[0].literal
			}
			for start, from := pos, pos; ; from++ {
				next := bytes.Index(msg[from:], core)
				if next < 0 { // the free text is cut off, or was cut before
					pos = len(msg)
					break
				}
				from += next
				if s.valid != nil && !s.valid(bytes.TrimSpace(msg[start:from])) {
					continue
				}
				before := d
				if pos = s.damaged(msg, from, &d); pos >= 0 {
					d.ranges[s.free] = trimRange(msg, start, from)
					break
				}
				d = before
			}
		}
	}
	if len(bytes.Trim(msg[pos:], " .")) > 0 || d.matched*100 < total*minMatched {
		return damage{}
	}
	return d
}

// damaged matches the segment's elements at pos, as far as the message goes. It returns
// where they end, -1 where they do not fit.
func (s *segment) damaged(msg []byte, pos int, d *damage) int {
	for _, el := range s.elements {
		if pos == len(msg) {
			break
		}
		n, matched, ok := el.damaged(msg[pos:])
		if !ok {
			return -1
		}
		d.matched += matched
		if el.hole >= 0 && pos+n < len(msg) { // a value at a line's cut end may not be whole
			d.ranges[el.hole] = trimRange(msg, pos, pos+n)
		}
		pos += n
	}
	return pos
}

// damaged matches the element at the head of msg, blanks aside. It returns how far it
// reaches, and how many bytes of a literal are there.
func (el *element) damaged(msg []byte) (n, matched int, ok bool) {
	if el.scan != nil {
		blanks := ascii.Span(msg, ascii.IsBlank)
		if n = el.scan(msg[blanks:]); n == 0 {
			n = scanToken(msg[blanks:])
		}
		return blanks + n, 0, n > 0 || blanks == len(msg)
	}
	for i := 0; i < len(el.literal) && n < len(msg); {
		switch want := el.literal[i]; {
		case msg[n] == want:
			i++
			n++
			matched++
		case msg[n] == ' ':
			n++
		case want == ' ':
			i++
		default:
			return 0, 0, false
		}
	}
	return n, matched, true
}

// scanToken accepts what may be left of a value that was cut short.
func scanToken(s []byte) int {
	return ascii.Span(s, func(c byte) bool { return ascii.IsAlpha(c) || ascii.IsDigit(c) || c == '_' || c == '-' })
}

func trimRange(msg []byte, start, end int) textRange {
	for start < end && ascii.IsBlank(msg[start]) {
		start++
	}
	for end > start && ascii.IsBlank(msg[end-1]) {
		end--
	}
	return textRange{start, end}
}
