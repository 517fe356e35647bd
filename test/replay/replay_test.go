package replay

import (
	"testing"
	"time"
)

func TestShift(t *testing.T) {
	log := "2026-11-29 23:59:59,500 INFO  c - Triggering checkpoint 1 @ 1795996799490 for job j.\n" +
		"\tat 2026-11-29 23:59:59,500 stays\n2026/11/29-23:59:59.000001 1 done"
	want := "2026-11-30 00:00:01,000 INFO  c - Triggering checkpoint 1 @ 1795996800990 for job j.\n" +
		"\tat 2026-11-29 23:59:59,500 stays\n2026/11/30-00:00:00.500001 1 done"
	got := Shift([]byte(log), 1500*time.Millisecond)
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if last := Last(got); !last.Equal(time.Date(2026, 11, 30, 0, 0, 1, 0, time.UTC)) {
		t.Errorf("last is %v", last)
	}
	if !Last([]byte("no time")).IsZero() {
		t.Error("a time is invented")
	}
}
