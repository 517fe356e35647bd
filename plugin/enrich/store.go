package enrich

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/cespare/xxhash/v2"
	jsoniter "github.com/json-iterator/go"
	"google.golang.org/protobuf/encoding/protowire"
)

// store keeps facts in a file that is only appended to: each chunk's changes are one
// frame, which is there whole or not at all. It is not fsynced: a process that is killed
// loses nothing that it wrote. From time to time the file is written anew, and renamed.
//
// The file begins with storeMagic, whose last byte but one is the [StateFormat]. A frame is
// the length of its body (4 bytes, big-endian), the body's xxhash64 (8 bytes), and the
// body: keys and values by turns, each behind its length as a varint. A fact without a
// value is forgotten.
type store struct {
	path string
	file *os.File
	size int64 // of the file
	live int64 // size after it was last written anew
}

type entry struct {
	Key   string
	Value []byte
}

var storeMagic = []byte("flink-loki state \x01\n")

const (
	storeName  = "facts"
	markPrefix = "chunk/"
	frameHead  = 4 + 8
	// maxFrame bounds the body of a frame that is read, against a torn length.
	maxFrame = 256 << 20
	// rewriteAfter is how much the file may grow before it is written anew.
	rewriteAfter = 4 << 20
)

// OpenState returns the state that is stored in a directory, which is made when it is not
// there. What is torn, foreign or of a newer format is set aside beside it, and told to
// note in a sentence. isIntact says that nothing of it was, so that the marks are all
// there. After an error nothing can be stored there.
func OpenState(dir string, maxBytes int, note func(string)) (s *State, isIntact bool, err error) {
	s = NewState(maxBytes)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, false, err
	}
	if s.lock, err = lockDir(dir); err != nil {
		return nil, false, err
	}
	path := filepath.Join(dir, storeName)
	isIntact = true
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, err
	}
	switch good, problem := s.load(content); {
	case errors.Is(err, fs.ErrNotExist):
		isIntact = false // marks may have been here, and were removed
	case problem != nil:
		isIntact = false
		aside := path + ".bad"
		if err := os.Rename(path, aside); err != nil {
			return nil, false, err
		}
		note(fmt.Sprintf("%s: %v: it is set aside as %s; what could be read of it (%d of %d bytes) is kept", path, problem, aside, good, len(content)))
	}
	s.store = &store{path: path}
	return s, isIntact, s.rewrite()
}

// lockDir takes a directory for this process; the lock goes with the process.
func lockDir(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("%s is in use by another process: %w", dir, err)
	}
	return file, nil
}

// ReadState reads the state that is stored in a directory, without taking the directory:
// what is told of it is only looked at.
func ReadState(dir string) (*State, error) {
	content, err := os.ReadFile(filepath.Join(dir, storeName))
	if err != nil {
		return nil, err
	}
	s := NewState(0)
	_, err = s.load(content)
	return s, err
}

// Each calls yield for each fact: its key, and its value as JSON.
func (s *State) Each(yield func(key string, value []byte) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(s.facts)) {
		value, _ := jsoniter.Marshal(s.facts[key].fact)
		if !yield(key, value) {
			return
		}
	}
}

// load reads the content of a file, as far as it can be read.
func (s *State) load(content []byte) (good int, problem error) {
	version := len(storeMagic) - 2
	if !bytes.HasPrefix(content, storeMagic[:version]) || len(content) < len(storeMagic) {
		return 0, errors.New("this is no file of a state")
	}
	if v := content[version]; v > StateFormat {
		return 0, fmt.Errorf("it has format %d, and this program reads %d", v, StateFormat)
	}
	values := map[string][]byte{}
	var keys []string // in the order in which they came
	good = len(storeMagic)
	for good < len(content) {
		body, ok := frame(content[good:])
		if !ok {
			problem = errors.New("its end is torn")
			break
		}
		good += frameHead + len(body)
		for len(body) > 0 {
			key, n := protowire.ConsumeBytes(body)
			value, m := protowire.ConsumeBytes(body[max(n, 0):])
			if n < 0 || m < 0 {
				return good, errors.New("it holds what is no fact")
			}
			values[string(key)] = value
			keys = append(keys, string(key))
			body = body[n+m:]
		}
	}
	for _, key := range keys {
		if value := values[key]; len(value) > 0 {
			s.restore(key, value)
		}
		delete(values, key)
	}
	s.shrink()
	s.saved()
	return good, problem
}

// frame returns the body of the frame that content begins with.
func frame(content []byte) (body []byte, ok bool) {
	if len(content) < frameHead {
		return nil, false
	}
	n := binary.BigEndian.Uint32(content)
	if n > maxFrame || int(n) > len(content)-frameHead {
		return nil, false
	}
	body = content[frameHead : frameHead+int(n)]
	return body, binary.BigEndian.Uint64(content[4:]) == xxhash.Sum64(body)
}

// restore puts a stored fact into the state. One that can't be read is left out.
func (s *State) restore(key string, value []byte) {
	if mark, ok := strings.CutPrefix(key, markPrefix); ok {
		s.marks[mark] = true
		return
	}
	kind, _, _ := strings.Cut(key, "/")
	make := newFact[kind]
	if make == nil {
		return
	}
	f := make()
	if jsoniter.Unmarshal(value, f) != nil {
		return
	}
	if h, ok := s.facts[key]; ok { // made by a fact that came before it
		if j, isJob := f.(*job); isJob {
			made := h.fact.(*job)
			j.base, j.checkpoints = made.base, slices.DeleteFunc(made.checkpoints, func(c *checkpoint) bool { return c.Run != j.Run })
			*made = *j
			s.touch(made)
			return
		}
		s.drop(h)
	}
	s.put(key, f)
}

// append appends a frame.
func (st *store) append(batch []entry) error {
	if len(batch) == 0 {
		return nil
	}
	b := encodeFrame(batch)
	n, err := st.file.Write(b)
	if err != nil && n > 0 {
		// A part of a frame would hide those behind it.
		err = errors.Join(err, st.file.Truncate(st.size))
	}
	if err == nil {
		st.size += int64(len(b))
	}
	return err
}

func encodeFrame(batch []entry) []byte {
	b := make([]byte, frameHead)
	for _, e := range batch {
		b = protowire.AppendString(b, e.Key)
		b = protowire.AppendBytes(b, e.Value)
	}
	body := b[frameHead:]
	binary.BigEndian.PutUint32(b, uint32(len(body)))
	binary.BigEndian.PutUint64(b[4:], xxhash.Sum64(body))
	return b
}

// rewrite writes the file anew, without what has been replaced.
func (s *State) rewrite() error {
	st := s.store
	file, err := os.CreateTemp(filepath.Dir(st.path), storeName+"-new-*")
	if err != nil {
		return err
	}
	fresh := &store{path: st.path, file: file}
	_, err = file.Write(storeMagic)
	fresh.size = int64(len(storeMagic))
	const frameEntries = 1000
	var batch []entry
	add := func(e entry) {
		if batch = append(batch, e); len(batch) == frameEntries && err == nil {
			err = fresh.append(batch)
			batch = batch[:0]
		}
	}
	for el := s.order.Front(); el != nil; el = el.Next() {
		h := el.Value.(*held)
		value, _ := jsoniter.Marshal(h.fact)
		add(entry{h.key, value})
	}
	for mark := range s.marks {
		add(entry{markPrefix + mark, []byte("{}")})
	}
	if err == nil {
		err = fresh.append(batch)
	}
	if err == nil {
		err = os.Rename(file.Name(), st.path)
	}
	if err != nil {
		_ = file.Close()
		_ = os.Remove(file.Name())
		return err
	}
	if st.file != nil {
		_ = st.file.Close()
	}
	fresh.live = fresh.size
	s.store = fresh
	s.saved()
	s.released = nil
	return nil
}

// HasMark reports whether a mark was saved with a pass and not released since.
func (s *State) HasMark(mark string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.marks[mark]
}

// Release forgets a mark. It is forgotten in the file with the next pass.
func (s *State) Release(mark string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.marks[mark] {
		delete(s.marks, mark)
		s.released = append(s.released, mark)
	}
}

// Close closes the state's file.
func (s *State) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store == nil || s.store.file == nil {
		return nil
	}
	return errors.Join(s.store.file.Close(), s.lock.Close())
}
