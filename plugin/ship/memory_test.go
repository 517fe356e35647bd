package ship

import (
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"

	"flink-loki/test/fakeloki"
)

// TestFlush_memory: chunks of 2 MB in which each line is an event, and a Loki that does
// not answer, take a bounded multiple of the chunks.
func TestFlush_memory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	loki := fakeloki.New(fakeloki.Config{})
	o := newOutput(t, loki, io.Discard, fakeConfig{"timeout": "3s"})
	const flushes, chunkSize = 4, 2 << 20
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	loki.HangNext(1000)
	var wg sync.WaitGroup
	var reading sync.WaitGroup
	for i := range flushes {
		var lines []string
		for size, n := 0, 0; size < chunkSize; n++ {
			line := expired(i*100_000 + n)
			lines = append(lines, line)
			size += len(line)
		}
		c := fileChunk("/log/jobmanager.log", lines...)
		lines = nil
		reading.Add(1)
		wg.Add(1)
		go func() {
			defer wg.Done()
			if o.Flush("t"+strings.Repeat("x", i), c, func() { c = nil; reading.Done() }) != Retry {
				t.Error("delivered")
			}
		}()
	}
	reading.Wait()
	grown := heap() - before
	t.Logf("%d MB for %d chunks of %d MB", grown>>20, flushes, chunkSize>>20)
	if limit := int64(flushes*chunkSize*6 + 48<<20); grown > limit {
		t.Errorf("%d MB, and %d MB are allowed", grown>>20, limit>>20)
	}
	loki.Close()
	wg.Wait()
}
