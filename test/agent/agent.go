// Package agent runs the built plug-in inside an agent, for tests: the C host of
// test/host, which does what it is told chunk by chunk, or a real Fluent Bit that the
// environment variable FLUENT_BIT names.
package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Options are the output's options by name.
type Options map[string]string

// Part is a piece of a log: what one chunk holds, or what is appended to a file that
// Fluent Bit tails.
type Part struct {
	Name string
	// File is the log's path as events name it.
	File string
	// Log is the whole log; First and Count pick lines of it, counted from 1.
	Log          string
	First, Count int
}

// Text returns the part's lines.
func (p Part) Text() (string, error) {
	b, err := os.ReadFile(p.Log)
	if err != nil {
		return "", err
	}
	lines := strings.SplitAfter(string(b), "\n")
	return strings.Join(lines[p.First-1:min(p.First-1+p.Count, len(lines))], ""), nil
}

// Agent is a running agent with one output. Its methods return errors that say what
// the agent printed.
type Agent interface {
	// Start starts the agent, or starts it again after Kill or Stop.
	Start() error
	// Send gives the agent a part. It returns whether the part was delivered at once;
	// a real Fluent Bit does not tell, so that it always says no.
	Send(Part) (delivered bool, err error)
	// Retry gives a part again that was not delivered; a real Fluent Bit does so by
	// itself.
	Retry(Part) (delivered bool, err error)
	// Kill ends the agent with SIGKILL, Stop in good order.
	Kill() error
	Stop() error
}

// Real reports whether the environment asks for a real Fluent Bit.
func Real() bool { return os.Getenv("FLUENT_BIT") != "" }

// New returns the agent that the environment asks for. It keeps its files in dir.
func New(dir string, options Options) (Agent, error) {
	if Real() {
		return NewFluentBit(os.Getenv("FLUENT_BIT"), dir, options)
	}
	return NewHost(dir, options)
}

// Built returns the path of something that "make build" puts into build/bin.
func Built(name string) (string, error) {
	_, here, _, _ := runtime.Caller(0)
	path := filepath.Join(filepath.Dir(here), "..", "..", "build", "bin", name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w: run \"make build host\"", err)
	}
	return path, nil
}
