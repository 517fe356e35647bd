package enrich

import (
	"container/list"
	"time"

	"github.com/cespare/xxhash/v2"
)

// maxCountedFiles bounds the files whose last lines a Counter remembers.
const maxCountedFiles = 1000

// Counter numbers equal lines of one file and time. Loki keeps byte-identical entries
// once, and real logs hold such lines; where a record has no offset, this number is
// what makes two of them two. A Counter is not safe for concurrent use.
//
// It remembers the last time of each file only. A file whose times jump back starts
// anew, so that lines which are read again get the numbers they had.
type Counter struct {
	files map[string]*list.Element // of *countedFile
	order list.List                // least recently used first
}

type countedFile struct {
	name string
	time time.Time
	seen map[uint64]int64 // by hash of the line
}

// Next returns how many equal lines of the file and time came before this one.
func (c *Counter) Next(file string, t time.Time, line []byte) int64 {
	f := c.file(file)
	if !f.time.Equal(t) {
		f.time = t
		clear(f.seen)
	}
	key := xxhash.Sum64(line)
	n := f.seen[key]
	f.seen[key] = n + 1
	return n
}

func (c *Counter) file(name string) *countedFile {
	if el, ok := c.files[name]; ok {
		c.order.MoveToBack(el)
		return el.Value.(*countedFile)
	}
	if c.files == nil {
		c.files = map[string]*list.Element{}
	}
	if len(c.files) == maxCountedFiles {
		oldest := c.order.Front()
		delete(c.files, oldest.Value.(*countedFile).name)
		c.order.Remove(oldest)
	}
	f := &countedFile{name: name, seen: map[uint64]int64{}}
	c.files[name] = c.order.PushBack(f)
	return f
}
