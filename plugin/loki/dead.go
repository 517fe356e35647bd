package loki

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"time"

	jsoniter "github.com/json-iterator/go"
)

// DeadLetter is an entry that could not be delivered, one line of JSON in a dead-letter
// file.
type DeadLetter struct {
	// At is when it was given up.
	At time.Time `json:"at"`
	// Reason is Loki's, or says what could not be read.
	Reason string `json:"reason"`
	Tenant string `json:"tenant,omitempty"`
	// Labels are those of the entry's stream; empty for what could not be read.
	Labels string `json:"labels,omitempty"`
	// Time is the entry's, in ns since 1970.
	Time     string            `json:"time,omitempty"`
	Line     string            `json:"line,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	// Tag and Bytes are of a piece of a chunk that is no log record.
	Tag   string `json:"tag,omitempty"`
	Bytes []byte `json:"bytes,omitempty"`
}

// NewDeadLetters returns a dead letter for each entry of a request.
func NewDeadLetters(at time.Time, reason string, r *Request) []DeadLetter {
	letters := make([]DeadLetter, 0, len(r.Entries))
	for _, e := range r.Entries {
		l := DeadLetter{At: at.UTC(), Reason: reason, Tenant: r.Tenant, Labels: r.Labels, Time: strconv.FormatInt(e.Time.UnixNano(), 10), Line: string(e.Line)}
		for _, p := range e.Metadata {
			if l.Metadata == nil {
				l.Metadata = map[string]string{}
			}
			l.Metadata[p.Name] = p.Value
		}
		letters = append(letters, l)
	}
	return letters
}

// Request returns the request that delivers the letter, nil for a piece of a chunk.
func (l *DeadLetter) Request() (*Request, error) {
	if l.Labels == "" {
		return nil, nil
	}
	ns, err := strconv.ParseInt(l.Time, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("time %q is no number of ns since 1970", l.Time)
	}
	e := Entry{Time: time.Unix(0, ns).UTC(), Line: []byte(l.Line), Read: l.At}
	for _, name := range sortedKeys(l.Metadata) {
		e.Metadata = append(e.Metadata, Pair{name, l.Metadata[name]})
	}
	return &Request{Tenant: l.Tenant, Labels: l.Labels, Entries: []Entry{e}}, nil
}

// DeadLetters is a dead-letter file. Each letter is on the disk when Write returns. At
// maxBytes the file is renamed to its name with .1, and that one to .2 and so on; the
// oldest goes. A file that somebody moves or removes is made anew. It is safe for
// concurrent use, and several may have one path.
type DeadLetters struct {
	path     string
	maxBytes int64

	mu   sync.Mutex
	file *os.File
}

// keptDeadLetters is how many files that are full are kept.
const keptDeadLetters = 4

// OpenDeadLetters opens a dead-letter file, or makes it. The error names the file.
func OpenDeadLetters(path string, maxBytes int64) (*DeadLetters, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a pipe would hang
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	d := &DeadLetters{path: path, maxBytes: maxBytes}
	return d, d.open()
}

// open opens the file in place of the one that is open, if any.
func (d *DeadLetters) open() error {
	file, err := os.OpenFile(d.path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if d.file != nil {
		_ = d.file.Close() // each letter in it is on the disk
	}
	d.file = file
	return nil
}

// size returns how large the file is, which is opened again where its path is not its own
// any more.
func (d *DeadLetters) size() (int64, error) {
	if info, err := d.file.Stat(); err == nil {
		if now, err := os.Stat(d.path); err == nil && os.SameFile(info, now) {
			return info.Size(), nil
		}
	}
	if err := d.open(); err != nil {
		return 0, err
	}
	info, err := d.file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Write appends letters. After an error, which is the disk's, none of them is surely
// there.
func (d *DeadLetters) Write(letters ...DeadLetter) error {
	var buf bytes.Buffer
	if err := WriteDeadLetters(&buf, letters...); err != nil {
		return err
	}
	b := buf.Bytes()
	d.mu.Lock()
	defer d.mu.Unlock()
	size, err := d.size()
	if err != nil {
		return err
	}
	if size > 0 && size+int64(len(b)) > d.maxBytes {
		if err := d.rotate(); err != nil {
			return err
		}
		size = 0
	}
	if size > 0 {
		var last [1]byte
		if _, err := d.file.ReadAt(last[:], size-1); err == nil && last[0] != '\n' { // torn by a kill or a full disk
			b = append([]byte("\n"), b...)
		}
	}
	if _, err = d.file.Write(b); err == nil {
		err = d.file.Sync()
	}
	return err
}

func (d *DeadLetters) rotate() error {
	for i := keptDeadLetters - 1; i > 0; i-- {
		_ = os.Rename(d.path+"."+strconv.Itoa(i), d.path+"."+strconv.Itoa(i+1)) // there may be none
	}
	if err := os.Rename(d.path, d.path+".1"); err != nil && !errors.Is(err, fs.ErrNotExist) { // another has done so
		return err
	}
	return d.open()
}

// Close closes the file.
func (d *DeadLetters) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.file.Close()
}

// WriteDeadLetters writes letters as lines of JSON.
func WriteDeadLetters(w io.Writer, letters ...DeadLetter) error {
	for i := range letters {
		line, err := jsoniter.Marshal(&letters[i])
		if err == nil {
			_, err = w.Write(append(line, '\n'))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ReadDeadLetters calls yield for each letter of a file, and bad for each line that is none,
// with an error that says which and why. It ends with the error of yield, or of the file.
func ReadDeadLetters(r io.Reader, yield func(*DeadLetter) error, bad func(error)) error {
	lines := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			var l DeadLetter
			if err := l.read(line); err != nil {
				bad(fmt.Errorf("line %d is no dead letter: %w", n, err))
			} else if err := yield(&l); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// read reads a line of JSON.
func (l *DeadLetter) read(line []byte) error {
	if err := jsoniter.Unmarshal(line, l); err != nil {
		return err
	}
	if !IsTenant(l.Tenant) {
		return fmt.Errorf("tenant %q is none that Loki takes", l.Tenant)
	}
	_, err := l.Request()
	return err
}
