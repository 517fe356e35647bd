package fakeloki

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Label is a name and its value.
type Label struct{ Name, Value string }

// Labels is a set of labels.
type Labels []Label

// Get returns the value of a label, "" where there is none.
func (ls Labels) Get(name string) string {
	for _, l := range ls {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// String prints the labels in their order as Loki does: {a="1", b="2"}.
func (ls Labels) String() string {
	var b strings.Builder
	b.WriteByte('{')
	for i, l := range ls {
		if i > 0 {
			b.WriteString(", ")
		}
		if isIdentifier(l.Name) {
			b.WriteString(l.Name)
		} else {
			b.WriteString(strconv.Quote(l.Name))
		}
		b.WriteByte('=')
		b.WriteString(strconv.Quote(l.Value))
	}
	b.WriteByte('}')
	return b.String()
}

// sorted returns the labels by name and then value, without those whose value is empty, as Loki keeps
// them (seen on 3.7.6 for stream labels and for structured metadata).
func (ls Labels) sorted() Labels {
	kept := slices.DeleteFunc(slices.Clone(ls), func(l Label) bool { return l.Value == "" })
	slices.SortStableFunc(kept, func(a, b Label) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Value, b.Value))
	})
	return kept
}

// ParseLabels reads a label set in Prometheus' syntax: names are identifiers or quoted, values are
// quoted with ", ' or `, a trailing comma, blanks and # comments are allowed. The labels keep their
// order, empty values and duplicates.
func ParseLabels(s string) (Labels, error) {
	p := labelParser{s: s}
	if p.next(); p.tok != "{" {
		if p.tok == "" && p.err == nil {
			return nil, nil // seen on 3.7.6: an empty text is an empty set
		}
		return nil, p.unexpected(`"{"`)
	}
	var ls Labels
	p.next()
	for p.tok != "}" {
		l := Label{Name: p.val}
		if p.tok != "identifier" && p.tok != "string" {
			return nil, p.unexpected(`identifier or "}"`)
		}
		if p.next(); p.tok != "=" {
			return nil, p.unexpected(`"="`)
		}
		if p.next(); p.tok != "string" {
			return nil, p.unexpected("string")
		}
		l.Value = p.val
		ls = append(ls, l)
		if p.next(); p.tok == "," {
			p.next()
		} else if p.tok != "}" {
			return nil, p.unexpected(`"," or "}"`)
		}
	}
	if p.next(); p.tok != "" || p.err != nil {
		return nil, p.unexpected("end of input")
	}
	return ls, nil
}

// labelParser cuts a label set into tokens.
type labelParser struct {
	s    string
	pos  int    // behind the token, in bytes
	from int    // where the token begins
	tok  string // "identifier", "string", the character itself, "" at the end
	val  string // of an identifier or string
	err  error
}

func (p *labelParser) next() {
	p.tok, p.val = "", ""
	for p.pos < len(p.s) {
		switch c := p.s[p.pos]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			p.pos++
			continue
		case c == '#':
			if n := strings.IndexByte(p.s[p.pos:], '\n'); n >= 0 {
				p.pos += n
			} else {
				p.pos = len(p.s)
			}
			continue
		}
		break
	}
	p.from = p.pos
	if p.pos == len(p.s) || p.err != nil {
		return
	}
	switch c := p.s[p.pos]; {
	case strings.IndexByte("{}=,", c) >= 0:
		p.tok = p.s[p.pos : p.pos+1]
		p.pos++
	case c == '"' || c == '\'' || c == '`':
		p.text(c)
	case isLetter(c):
		for p.pos < len(p.s) && (isLetter(p.s[p.pos]) || isDigit(p.s[p.pos])) {
			p.pos++
		}
		p.tok, p.val = "identifier", p.s[p.from:p.pos]
	default:
		r, _ := utf8.DecodeRuneInString(p.s[p.pos:])
		p.err = fmt.Errorf("unexpected character inside braces: %q", r)
	}
}

// text reads a quoted string; p.pos is at its opening quote.
func (p *labelParser) text(quote byte) {
	end := p.pos + 1
	for ; end < len(p.s) && p.s[end] != quote; end++ {
		if quote == '`' {
			continue
		}
		if p.s[end] == '\n' {
			end = len(p.s)
			break
		}
		if p.s[end] == '\\' {
			end++
		}
	}
	if end >= len(p.s) {
		p.err = fmt.Errorf("unterminated quoted string")
		return
	}
	raw := p.s[p.pos+1 : end]
	if !utf8.ValidString(raw) {
		p.err = fmt.Errorf("invalid UTF-8 rune")
		return
	}
	if quote == '`' {
		p.tok, p.val, p.pos = "string", raw, end+1
		return
	}
	var b []byte
	for rest := raw; rest != ""; {
		r, multibyte, tail, err := strconv.UnquoteChar(rest, quote)
		if err != nil {
			p.err = fmt.Errorf("unknown escape sequence in %q", raw)
			return
		}
		if r < utf8.RuneSelf || !multibyte {
			b = append(b, byte(r))
		} else {
			b = utf8.AppendRune(b, r)
		}
		rest = tail
	}
	p.tok, p.val, p.pos = "string", string(b), end+1
}

func (p *labelParser) unexpected(want string) error {
	at := "1:" + strconv.Itoa(p.from+1) + ": parse error: "
	switch {
	case p.err != nil:
		return fmt.Errorf("%s%w", at, p.err)
	case p.tok == "":
		return fmt.Errorf("%sunexpected end of input, expected %s", at, want)
	}
	return fmt.Errorf("%sunexpected %q in label set, expected %s", at, p.s[p.from:p.pos], want)
}

func isLetter(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isIdentifier(s string) bool {
	for i := range len(s) {
		if !isLetter(s[i]) && (i == 0 || !isDigit(s[i])) {
			return false
		}
	}
	return s != ""
}

// metadataName returns the name under which Loki keeps structured metadata: a run of anything but
// letters and digits is one "_", and a name that begins with a digit gets "key_" before it; __reserved__
// names stay. A name without any letter or digit is an error, which Loki answers with 500.
// Seen on 3.7.6: "a.b", "a:b", "a__b" are a_b, "1a" is key_1a, " a " is _a_; "", "_", "-" and "é" fail.
func metadataName(name string) (string, error) {
	if name == "" {
		return "", fmt.Errorf("label name is empty")
	}
	if len(name) > 4 && strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") && isIdentifier(name) {
		return name, nil
	}
	var b strings.Builder
	if isDigit(name[0]) {
		b.WriteString("key_")
	}
	telling, gap := false, false
	for _, r := range name {
		if r < utf8.RuneSelf && r != '_' && (isLetter(byte(r)) || isDigit(byte(r))) {
			b.WriteRune(r)
			telling, gap = true, false
		} else if !gap {
			b.WriteByte('_')
			gap = true
		}
	}
	if !telling {
		return "", fmt.Errorf("normalization for label name %q resulted in invalid name %q", name, b.String())
	}
	return b.String(), nil
}

// normalMetadata is metadata as Loki keeps it. Of two equal names the later value counts.
func normalMetadata(pushed Labels) (Labels, error) {
	if len(pushed) == 0 {
		return nil, nil
	}
	kept := make(Labels, 0, len(pushed))
	for _, l := range pushed {
		name, err := metadataName(l.Name)
		if err != nil {
			return nil, err
		}
		kept = slices.DeleteFunc(kept, func(k Label) bool { return k.Name == name })
		kept = append(kept, Label{Name: name, Value: l.Value})
	}
	return kept.sorted(), nil
}
