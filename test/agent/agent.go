// Package agent runs the built plug-in inside an agent, for tests: the C host of
// test/host, which does what it is told chunk by chunk, or a real Fluent Bit that the
// environment variable FLUENT_BIT names.
package agent

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Options are an output's options by name, Fluent Bit's own "workers" (default 1) among them.
type Options map[string]string

func (o Options) workers() string { return cmp.Or(o["workers"], "1") }

// Part is a piece of a log: what one chunk holds, or what is appended to a file that
// Fluent Bit tails.
type Part struct {
	Name string
	// File is the log's path as events name it.
	File string
	// Log is the whole log; First and Count pick lines of it, counted from 1.
	Log          string
	First, Count int
	// Torn says that between its records stand pieces that are none. Only the host can.
	Torn bool
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

// Agent is a running agent with one output or several. Its methods return errors that say what
// the agent printed.
type Agent interface {
	// Start starts the agent, or starts it again after Kill or Stop.
	Start() error
	// Send gives the agent parts, all at once. It returns whether they were delivered at
	// once; a real Fluent Bit does not tell, so that it always says no.
	Send(...Part) (delivered bool, err error)
	// Retry gives a part again to the outputs that have not delivered it; a real Fluent Bit
	// does so by itself.
	Retry(Part) (delivered bool, err error)
	// Reload ends the outputs and starts them again within the same process, as Fluent Bit
	// does at SIGHUP.
	Reload() error
	// Kill ends the agent with SIGKILL, Stop in good order.
	Kill() error
	Stop() error
}

// Real reports whether the environment asks for a real Fluent Bit.
func Real() bool { return os.Getenv("FLUENT_BIT") != "" }

// New returns the agent that the environment asks for, with an output for each options. It
// keeps its files in dir.
func New(dir string, outputs ...Options) (Agent, error) {
	if Real() {
		return NewFluentBit(os.Getenv("FLUENT_BIT"), dir, outputs...)
	}
	return NewHost(dir, outputs...)
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
