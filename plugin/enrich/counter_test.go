package enrich

import (
	"fmt"
	"testing"
	"time"
)

func TestCounter(t *testing.T) {
	var c Counter
	at := time.Unix(1000, 0)
	f := func(file string, after time.Duration, line string, want int64) {
		t.Helper()
		if got := c.Next(file, at.Add(after), []byte(line)); got != want {
			t.Errorf("%s +%v %s: got %d, want %d", file, after, line, got, want)
		}
	}
	f("a", 0, "x", 0)
	f("a", 0, "x", 1)
	f("a", 0, "y", 0)
	f("b", 0, "x", 0)
	f("a", 0, "x", 2)
	f("a", 1, "x", 0)
	f("a", 0, "x", 0) // the file is read again
	f("a", 0, "x", 1)
	f("b", 0, "x", 1)
}

func TestCounter_bounded(t *testing.T) {
	var c Counter
	for i := range 3 * maxCountedFiles {
		c.Next(fmt.Sprint(i), time.Unix(0, 0), nil)
	}
	if len(c.files) != maxCountedFiles || c.order.Len() != maxCountedFiles {
		t.Errorf("%d files", len(c.files))
	}
}
