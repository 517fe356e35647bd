// Package lokitest runs a real Loki for tests and for the demo, and asks it what it has.
//
// Which Loki: the one at LOKI_URL, else the program LOKI_BIN, else build/bin/loki of this repository
// (Loki 2.2.1, made by `make loki`). A started Loki lives below a directory of its own, listens on the
// loopback only and dies with the process that started it.
package lokitest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"flink-loki/test/proc"
)

// Options say which Loki a caller needs. The zero Options take any.
type Options struct {
	// Tenant goes with every query as X-Scope-OrgID. A Loki that is started has tenants on where this is
	// set; otherwise its one tenant is "fake", whatever the header says.
	Tenant string
	// RuleFiles are copied to where the ruler reads the rules of the tenant.
	RuleFiles []string
	// Args are further flags of Loki; they win over the configuration file.
	Args []string
	// Own asks for a Loki that the caller alone uses, started even where LOKI_URL is set: because it will
	// be killed, for instance. RuleFiles and Args imply it.
	Own bool
	// MinMajor is the oldest major version of use; with an older one Start fails with ErrTooOld.
	MinMajor int
	// Dir is the working directory, made if missing and kept by Stop. Where empty it is a temporary one,
	// which Stop removes.
	Dir string
	// Outlive leaves Loki running when this process ends; then Pid tells whom to end.
	Outlive bool
	// ReadyWithin bounds the wait for /ready; one minute where 0.
	ReadyWithin time.Duration
}

// Server is a running Loki. Its methods are safe for concurrent use.
type Server struct {
	url     string
	tenant  string
	version string
	client  *http.Client

	// The rest is for a Loki that was started here; bin is "" for one at LOKI_URL.
	bin     string
	dir     string
	keepDir bool
	args    []string
	env     []string
	ready   time.Duration
	outlive bool

	mu    sync.Mutex
	child *proc.Process
}

// Why a test may be skipped.
var (
	// ErrNone is the absence of any Loki to use.
	ErrNone = errors.New("no Loki to run")
	// ErrTooOld is a Loki older than Options.MinMajor.
	ErrTooOld = errors.New("too old a Loki")
)

// Start returns a Loki that answers /ready. ctx bounds the start, not the life of the server. Where it
// fails the working directory stays, with the log that the error quotes.
func Start(ctx context.Context, o Options) (*Server, error) {
	s := &Server{tenant: o.Tenant, ready: o.ReadyWithin, outlive: o.Outlive, client: &http.Client{}}
	if s.ready == 0 {
		s.ready = time.Minute
	}
	own := o.Own || len(o.RuleFiles) > 0 || len(o.Args) > 0
	if url := os.Getenv("LOKI_URL"); url != "" && !own {
		s.url = strings.TrimSuffix(url, "/")
		if err := s.waitReady(ctx, nil); err != nil {
			return nil, fmt.Errorf("loki at LOKI_URL: %w", err)
		}
		version, err := s.askVersion(ctx)
		if err != nil {
			return nil, fmt.Errorf("version of the loki at LOKI_URL: %w", err)
		}
		s.version = version
		if err := s.checkVersion(o.MinMajor); err != nil {
			return nil, err
		}
		return s, nil
	}
	root, err := repositoryRoot()
	if err != nil {
		return nil, err
	}
	if s.bin, err = findBinary(root); err != nil {
		return nil, err
	}
	if s.version, err = binaryVersion(ctx, s.bin); err != nil {
		return nil, err
	}
	if err := s.checkVersion(o.MinMajor); err != nil {
		return nil, err
	}
	if err := s.prepare(o, root); err != nil {
		return nil, err
	}
	// Between choosing the ports and Loki's listening on them another process may take one.
	for try := 1; ; try++ {
		if err = s.choosePorts(); err == nil {
			err = s.startChild(ctx)
		}
		if err == nil {
			return s, nil
		}
		if try == 2 || !strings.Contains(s.LogTail(), "address already in use") {
			return nil, err
		}
	}
}

// URL returns the address without a path: http://127.0.0.1:3100.
func (s *Server) URL() string { return s.url }

// Version returns as much of the version as can be told: "2.2.1", "3.7.6", "3".
func (s *Server) Version() string { return s.version }

// Major returns the first number of the version, 0 where it can't be told.
func (s *Server) Major() int {
	major := 0
	_, _ = fmt.Sscanf(s.version, "%d", &major)
	return major
}

// Dir returns the working directory of a started Loki, "" for one at LOKI_URL.
func (s *Server) Dir() string { return s.dir }

// Pid returns the process id of a started Loki, 0 for one at LOKI_URL.
func (s *Server) Pid() int {
	if s.bin == "" {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.child.Pid
}

// errForeign is the answer to what only the owner of a Loki may do.
var errForeign = errors.New("the loki at LOKI_URL is not ours to stop; start one with Options.Own")

// Kill ends Loki at once, as kill -9 or a crash of the host would.
func (s *Server) Kill() error {
	if s.bin == "" {
		return errForeign
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.child.Kill()
	return nil
}

// Restart starts Loki again with the same data and ports. One that still runs is stopped first, by
// SIGTERM.
func (s *Server) Restart(ctx context.Context) error {
	if s.bin == "" {
		return errForeign
	}
	s.mu.Lock()
	_ = s.child.Terminate()
	s.mu.Unlock()
	return s.startChild(ctx)
}

// Stop ends Loki and removes its working directory, unless Options.Dir named it. A Loki at LOKI_URL is
// left alone.
func (s *Server) Stop() error {
	if s.bin == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keepDir {
		_ = s.child.Terminate()
		return nil
	}
	s.child.Kill()
	return os.RemoveAll(s.dir)
}

// LogTail returns the end of the log of a started Loki, for a test that fails.
func (s *Server) LogTail() string {
	const most = 4 << 10 // bytes
	b, err := os.ReadFile(filepath.Join(s.dir, logFile))
	if err != nil || s.dir == "" {
		return ""
	}
	if len(b) > most {
		b = b[len(b)-most:]
	}
	return string(b)
}
