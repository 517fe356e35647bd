package enrich

import (
	"bytes"
	"container/list"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/encoding/protowire"
)

// Fingerprint names a chunk: its tag and content, and who rendered it.
type Fingerprint [16]byte

// String returns the fingerprint in hexadecimal digits.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }

// NewFingerprint returns the fingerprint of a chunk. renderer tells apart outputs that
// render the same chunk in different ways.
func NewFingerprint(renderer uint64, tag string, chunk []byte) (f Fingerprint) {
	h := xxhash.New()
	_ = binary.Write(h, binary.BigEndian, renderer)
	_, _ = h.WriteString(tag)
	_, _ = h.Write([]byte{0})
	h.Sum(f[:0])
	_, _ = h.Write(chunk)
	h.Sum(f[:8])
	return f
}

// Journal keeps the push requests of each chunk that is not yet delivered, bounded by
// size. With a directory it survives a restart: each entry is a file, written whole
// and then renamed. Files are not fsynced: the chunk itself is in Fluent Bit's
// storage, and a process that is killed loses nothing it wrote. A Journal is safe for
// concurrent use.
type Journal struct {
	dir      string // empty: memory only
	maxBytes int64
	now      func() time.Time

	mu       sync.Mutex
	released []Fingerprint                 // whose files are still there, oldest first
	entries  map[Fingerprint]*list.Element // of *journalEntry
	order    list.List                     // oldest first
	bytes    int64
	evicted  int
}

type journalEntry struct {
	fingerprint Fingerprint
	size        int64
	requests    [][]byte     // nil when they are in the entry's file
	delivered   map[int]bool // which of the requests need not be sent again
	asked       time.Time    // when the chunk came last, the zero Time where that was before a restart
}

const journalSuffix = ".chunk"

// journalMagic starts each file; its last byte is the [StateFormat]. Behind it stand
// the xxhash64 of what follows, big-endian, and the requests, each behind its length
// as a varint.
var journalMagic = append([]byte("flink-loki journal "), StateFormat)

// OpenJournal returns the journal that is stored in a directory, which is made when
// it is not there; "" keeps it in memory. maxBytes bounds the sum of the requests;
// the oldest go first. Files that are no journal entries are left alone. After an
// error, which names the directory, nothing can be stored there.
func OpenJournal(dir string, maxBytes int64) (*Journal, error) {
	j := &Journal{dir: dir, maxBytes: maxBytes, now: time.Now, entries: map[Fingerprint]*list.Element{}}
	if dir == "" {
		return j, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	probe, err := os.CreateTemp(dir, "probe-*")
	if err != nil {
		return nil, err
	}
	_ = probe.Close()
	_ = os.Remove(probe.Name())
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		name, isEntry := strings.CutSuffix(file.Name(), journalSuffix)
		var f Fingerprint
		if n, err := hex.Decode(f[:], []byte(name)); !isEntry || err != nil || n != len(f) {
			continue
		}
		if info, err := file.Info(); err == nil {
			j.add(&journalEntry{fingerprint: f, size: info.Size()})
		}
	}
	return j, nil
}

func (j *Journal) path(f Fingerprint) string {
	return filepath.Join(j.dir, f.String()+journalSuffix)
}

// Keep forgets the entries that keep does not want.
func (j *Journal) Keep(keep func(Fingerprint) bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for f, el := range j.entries {
		if !keep(f) {
			j.forget(el)
			j.remove(f)
		}
	}
}

// Empty reports whether the journal has no entry, so that no chunk can be a retry.
func (j *Journal) Empty() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.entries) == 0
}

// maxWait is longer than the longest time after which Fluent Bit brings a chunk again
// (scheduler.cap, 2,000 s by default). One that does not come for as long was dropped.
const maxWait = time.Hour

// Pending reports whether a chunk of a tag waits for delivery. Those that were in the
// journal at the start may have been delivered: they count once they come.
func (j *Journal) Pending(renderer uint64, tag string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	ofTag := NewFingerprint(renderer, tag, nil)
	for f, el := range j.entries {
		if asked := el.Value.(*journalEntry).asked; bytes.Equal(f[:8], ofTag[:8]) && j.now().Sub(asked) < maxWait { // the part that is of the tag
			return true
		}
	}
	return false
}

// Get returns the requests that were rendered for a chunk, with nil for those that
// [Journal.Delivered] named; nil where there is no entry. An error means that there was
// one and it can't be read; it is forgotten, and its file set aside.
func (j *Journal) Get(f Fingerprint) ([][]byte, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	el, ok := j.entries[f]
	if !ok {
		return nil, nil
	}
	e := el.Value.(*journalEntry)
	e.asked = j.now()
	if e.requests != nil {
		return e.left(e.requests), nil
	}
	requests, err := readEntry(j.path(f))
	if err == nil {
		return e.left(requests), nil
	}
	j.forget(el)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return nil, errors.Join(err, os.Rename(j.path(f), j.path(f)+".bad"))
}

// Put stores the requests of a chunk. After an error, which is that of the disk, the
// entry is kept in memory: it does not survive a restart.
func (j *Journal) Put(f Fingerprint, requests [][]byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, ok := j.entries[f]; ok {
		return nil
	}
	e := &journalEntry{fingerprint: f, requests: requests, asked: j.now()}
	for _, r := range requests {
		e.size += int64(len(r))
	}
	var err error
	if j.dir != "" {
		if err = j.writeEntry(j.path(f), requests); err == nil {
			e.requests = nil
		}
	}
	j.add(e)
	return err
}

// left returns an entry's requests, nil in the place of those that are delivered.
func (e *journalEntry) left(requests [][]byte) [][]byte {
	left := slices.Clone(requests)
	for i := range left {
		if e.delivered[i] {
			left[i] = nil
		}
	}
	return left
}

// Delivered notes that one of a chunk's requests is delivered, so that a retry leaves it
// out. After a restart it is sent again.
func (j *Journal) Delivered(f Fingerprint, request int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if el, ok := j.entries[f]; ok {
		e := el.Value.(*journalEntry)
		if e.delivered == nil {
			e.delivered = map[int]bool{}
		}
		e.delivered[request] = true
	}
}

// maxReleased is how many chunks that are delivered keep their files: a process that is
// killed before Fluent Bit has noted the OK is given the chunk again.
const maxReleased = 16

// Release forgets a chunk that is delivered, and returns those whose files are gone.
func (j *Journal) Release(f Fingerprint) (gone []Fingerprint) {
	j.mu.Lock()
	defer j.mu.Unlock()
	el, ok := j.entries[f]
	if !ok {
		return nil
	}
	j.forget(el)
	j.released = append(j.released, f)
	if n := len(j.released) - maxReleased; n > 0 {
		gone, j.released = j.released[:n:n], j.released[n:]
	}
	for _, f := range gone {
		j.remove(f)
	}
	return gone
}

// Evicted returns how many entries were dropped because the journal was full. A retry
// of such a chunk is rendered anew and may differ from what was sent before.
func (j *Journal) Evicted() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.evicted
}

func (j *Journal) add(e *journalEntry) {
	j.entries[e.fingerprint] = j.order.PushBack(e)
	j.bytes += e.size
	for j.bytes > j.maxBytes && j.order.Len() > 1 {
		oldest := j.order.Front()
		j.forget(oldest)
		j.remove(oldest.Value.(*journalEntry).fingerprint)
		j.evicted++
	}
}

func (j *Journal) forget(el *list.Element) {
	e := el.Value.(*journalEntry)
	j.order.Remove(el)
	delete(j.entries, e.fingerprint)
	j.bytes -= e.size
}

func (j *Journal) remove(f Fingerprint) {
	if j.dir != "" {
		_ = os.Remove(j.path(f)) // a file that stays is found again after a restart and does no harm
	}
}

func (j *Journal) writeEntry(path string, requests [][]byte) error {
	var body []byte
	for _, r := range requests {
		body = protowire.AppendBytes(body, r)
	}
	file, err := os.CreateTemp(j.dir, "new-*")
	if err != nil {
		return err
	}
	head := binary.BigEndian.AppendUint64(bytes.Clone(journalMagic), xxhash.Sum64(body))
	_, err = file.Write(append(head, body...))
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}

func readEntry(path string) ([][]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	head := len(journalMagic)
	if len(b) < head+8 || !bytes.Equal(b[:head-1], journalMagic[:head-1]) {
		return nil, fmt.Errorf("%s is no journal entry", path)
	}
	if b[head-1] != StateFormat {
		return nil, fmt.Errorf("%s has format %d, this program reads %d", path, b[head-1], StateFormat)
	}
	body := b[head+8:]
	if binary.BigEndian.Uint64(b[head:]) != xxhash.Sum64(body) {
		return nil, fmt.Errorf("%s is torn", path)
	}
	var requests [][]byte
	for len(body) > 0 {
		r, n := protowire.ConsumeBytes(body)
		if n < 0 {
			return nil, fmt.Errorf("%s: %w", path, protowire.ParseError(n))
		}
		requests = append(requests, r)
		body = body[n:]
	}
	return requests, nil
}
