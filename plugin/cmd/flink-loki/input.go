package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"flink-loki/parsers"
)

// input is one file whose lines are read. The name "-" is standard input. What is packed
// by gzip is unpacked.
type input struct {
	name   string
	file   io.Closer
	lines  *bufio.Reader
	source *parsers.Source
	line   int
	offset int64 // of the next line
	// each is told the offset and text of each line, nil for none: else lines have no
	// offset.
	each func(offset int64, line []byte)
}

// open opens an input whose events go to emit.
func (f *parseFlags) open(parser *parsers.Parser, stdin io.Reader, name string, emit func(*parsers.Event)) (*input, error) {
	in := &input{name: name}
	content, err := in.openFile(stdin)
	if err != nil {
		return nil, err
	}
	in.source = parser.NewSource(emit)
	in.source.Known = f.known(name)
	if f.unrecognised {
		in.source.Unrecognised = emit
	}
	if isAuto := strings.EqualFold(f.timezone, "auto"); !isAuto {
		in.source.WrongZone = func(offset time.Duration) {
			fmt.Fprintf(os.Stderr, "%s: the file's clock is that of UTC%+g h, and --timezone is %s: give its zone, or auto\n", name, offset.Hours(), f.timezone)
			in.source.WrongZone = nil
		}
	} else if name != "-" {
		// The lines that tell the zone can come late: look for one first.
		if err := in.learnZone(parser, content); err != nil {
			return nil, err
		}
		if content, err = in.openFile(stdin); err != nil {
			return nil, err
		}
	}
	in.lines = bufio.NewReaderSize(content, 1<<20)
	return in, nil
}

func (in *input) openFile(stdin io.Reader) (io.Reader, error) {
	content := stdin
	if in.name != "-" {
		_ = in.close()
		file, err := os.Open(in.name)
		if err != nil {
			return nil, err
		}
		in.file, content = file, file
	}
	buffered := bufio.NewReader(content)
	switch head, _ := buffered.Peek(2); string(head) {
	case "\x1f\x8b":
		unpacked, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", in.name, err)
		}
		return unpacked, nil
	case "\xff\xfe", "\xfe\xff":
		return nil, fmt.Errorf("%s is UTF-16: convert it first, as by iconv -f UTF-16 -t UTF-8", in.name)
	}
	return buffered, nil
}

func (in *input) close() error {
	if in.file == nil {
		return nil
	}
	return in.file.Close()
}

// known is what the name of a file tells.
func (f *parseFlags) known(name string) *parsers.Event {
	known := &parsers.Event{}
	if name != "-" {
		parsers.AddFileName(known, []byte(name))
	}
	if f.fileName != "" {
		parsers.AddFileName(known, []byte(f.fileName))
		known.SetText(parsers.Filename, []byte(f.fileName))
	}
	return known
}

// learnZone reads until the file has told its zone.
func (in *input) learnZone(parser *parsers.Parser, content io.Reader) error {
	learner := input{name: in.name, lines: bufio.NewReaderSize(content, 1<<20), source: parser.NewSource(func(*parsers.Event) {})}
	learner.source.Clock = in.source.Clock
	for more := true; more && !in.source.Clock.Learnt(); {
		var err error
		if more, err = learner.read(); err != nil {
			return err
		}
	}
	return nil
}

// read reads a line; more is false behind the last one, when nothing is held back.
func (in *input) read() (more bool, err error) {
	in.line++
	// Each line is memory of its own, as Source.Record asks.
	text, err := in.lines.ReadBytes('\n')
	if len(text) > 0 {
		origin, line := parsers.Origin{Line: in.line, Offset: -1}, bytes.TrimSuffix(text, []byte("\n"))
		if in.each != nil {
			origin.Offset = in.offset
			in.each(in.offset, line)
		}
		in.source.Record(origin, line)
		in.offset += int64(len(text))
	}
	if err == nil {
		return true, nil
	}
	in.source.Flush()
	if err == io.EOF {
		return false, nil
	}
	return false, fmt.Errorf("%s: line %d: %w", in.name, in.line, err)
}

// line is an event, or a line that only teaches, of one of several files.
type line struct {
	file     string
	event    *parsers.Event
	isLesson bool
}

// feed is a file that is merged with others.
type feed struct {
	*input
	queue []*line
	at    time.Time // of the first in the queue; never before those that were taken
}

// fill reads until the queue has a line; ok is false at the end of the file.
func (f *feed) fill() (ok bool, err error) {
	for more := true; more && len(f.queue) == 0; {
		if more, err = f.read(); err != nil {
			return false, err
		}
	}
	if len(f.queue) == 0 {
		return false, nil
	}
	if at, has := f.queue[0].event.Time(parsers.Time); has && at.After(f.at) {
		f.at = at
	}
	return true, nil
}

// merge hands the events and lessons of files to take, in the order of their times.
func (f *parseFlags) merge(parser *parsers.Parser, stdin io.Reader, names []string, take func(*line)) error {
	var feeds []*feed
	defer func() {
		for _, fd := range feeds {
			_ = fd.close()
		}
	}()
	for _, name := range names {
		fd := &feed{}
		add := func(isLesson bool) func(*parsers.Event) {
			return func(e *parsers.Event) { fd.queue = append(fd.queue, &line{name, e.Clone(), isLesson}) }
		}
		in, err := f.open(parser, stdin, name, add(false))
		if err != nil {
			return err
		}
		fd.input = in
		in.source.Lesson = add(true)
		if len(names) > 1 {
			in.source.Known.SetText(parsers.Filename, []byte(name))
		}
		feeds = append(feeds, fd)
	}
	for {
		var first *feed
		for _, fd := range feeds {
			ok, err := fd.fill()
			if err != nil {
				return err
			}
			if ok && (first == nil || fd.at.Before(first.at)) {
				first = fd
			}
		}
		if first == nil {
			return nil
		}
		take(first.queue[0])
		first.queue = first.queue[1:]
	}
}
