package ship

import (
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"flink-loki/test/fakeloki"
)

// TestFlush_workers: several workers, and two outputs to two Lokis that share their state,
// deliver each event once, whatever fails.
func TestFlush_workers(t *testing.T) {
	for _, workers := range []int{2, 4} {
		want := onePass(t, "1.20.5/debug-mixed", "*.log")
		state := t.TempDir()
		var outputs []*Output
		var lokis []*fakeloki.Loki
		for range 2 {
			loki := fakeloki.New(fakeloki.Config{})
			lokis = append(lokis, loki)
			outputs = append(outputs, newOutput(t, loki, io.Discard, fakeConfig{"state_path": state, "labels": "cluster=test", "kinds": "all"}))
		}
		random := rand.New(rand.NewPCG(uint64(workers), 5))
		parts := realLogs(t, "1.20.5/debug-mixed", "*.log", func(line []byte) bool {
			_, isHeader := lineTime(line)
			return isHeader && random.IntN(50) == 0
		})
		for i, o := range outputs {
			queue := make(chan *part, 10*len(parts))
			var left sync.WaitGroup
			for _, p := range parts {
				left.Add(1)
				queue <- &part{file: p.file, records: p.records, at: p.at}
			}
			for range workers {
				go func() {
					for p := range queue {
						if p.tries++; p.tries < 3 && len(p.records)%3 == 0 {
							lokis[i].FailNext(1, 500, nil, "fault")
						}
						if o.Flush("t", p.chunk(), func() {}) == OK {
							left.Done()
						} else {
							queue <- p
						}
					}
				}()
			}
			left.Wait()
			close(queue)
			(&agent{t: t, output: o}).finish()
			compare(t, fmt.Sprintf("%d workers, output %d", workers, i+1), identities(t, fmt.Sprintf("output %d", i+1), lokis[i]), want, ofTrace)
		}
	}
}
