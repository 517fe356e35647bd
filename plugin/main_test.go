package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"flink-loki/plugin/ship"
)

// TestGuard_panic: a panic in what a callback does is its failure, and is told; it ends
// nothing.
func TestGuard_panic(t *testing.T) {
	for _, read := range []chan struct{}{nil, make(chan struct{})} {
		var log bytes.Buffer
		result, ok := guard(ship.NewLogger(&log, slog.LevelInfo), time.Minute, read, func() int { panic("a bug") })
		if ok || result != 0 {
			t.Errorf("got %d, %v", result, ok)
		}
		if !strings.Contains(log.String(), "a bug") || !strings.Contains(log.String(), "main_test.go") {
			t.Errorf("the log does not say what and where: %s", log.String())
		}
	}
}

// TestGuard_waits: as long as memory of the agent's is read there is no limit; then what
// goes on too long is left to itself.
func TestGuard_waits(t *testing.T) {
	log := ship.NewLogger(&bytes.Buffer{}, slog.LevelInfo)
	read, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	isRead := false
	_, ok := guard(log, time.Millisecond, read, func() int {
		defer close(ended)
		time.Sleep(50 * time.Millisecond) // longer than the limit
		isRead = true
		close(read)
		<-goOn
		return 1
	})
	if !isRead {
		t.Error("it returns while memory of the agent's is read")
	}
	if ok {
		t.Error("it has waited for what does not end")
	}
	close(goOn)
	<-ended
	if result, ok := guard(log, time.Minute, nil, func() int { return 7 }); !ok || result != 7 {
		t.Errorf("got %d, %v", result, ok)
	}
}
