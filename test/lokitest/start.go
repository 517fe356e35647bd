package lokitest

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"flink-loki/test/proc"
)

const (
	logFile     = "loki.log"
	builtBinary = "build/bin/loki" // below the repository's root
)

// The configurations, below the repository's root, by the major version of Loki.
var configFiles = map[string]string{
	"2": "test/loki221/loki.yaml",
	"3": "test/lokitest/loki3.yaml",
}

// repositoryRoot finds the directory of this repository's go.mod at or above the working directory.
func repositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(b), "module flink-loki\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("not within a checkout of flink-loki, which has Loki's configuration: run from below its root, or set LOKI_URL")
		}
		dir = parent
	}
}

// findBinary returns the absolute path of LOKI_BIN or of the built binary.
func findBinary(root string) (string, error) {
	if bin := os.Getenv("LOKI_BIN"); bin != "" {
		path, err := exec.LookPath(bin)
		if err != nil {
			return "", fmt.Errorf("LOKI_BIN: %w", err)
		}
		return filepath.Abs(path)
	}
	bin := filepath.Join(root, builtBinary)
	if _, err := os.Stat(bin); err != nil {
		return "", fmt.Errorf("%w: %s is missing; run `make loki`, or set LOKI_BIN or LOKI_URL", ErrNone, builtBinary)
	}
	return bin, nil
}

var versionOutput = regexp.MustCompile(`version v?(\d+\.\d+\.\d+)`)

// binaryVersion asks the program, and where its builder has not set a version, what Go has noted in it.
func binaryVersion(ctx context.Context, bin string) (string, error) {
	out, err := exec.CommandContext(ctx, bin, "-version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s -version: %w\n%s", bin, err, out)
	}
	if m := versionOutput.FindSubmatch(out); m != nil {
		return string(m[1]), nil
	}
	info, err := buildinfo.ReadFile(bin)
	if err != nil {
		return "", fmt.Errorf("version of %s: %w", bin, err)
	}
	switch {
	case info.Path == "github.com/grafana/loki/cmd/loki" && strings.HasSuffix(info.Main.Version, "-babea82ef558"):
		return "2.2.1", nil // as test/loki221 builds it
	case strings.HasPrefix(info.Path, "github.com/grafana/loki/v3/"):
		return "3", nil
	case strings.HasPrefix(info.Path, "github.com/grafana/loki/"):
		return "2", nil
	}
	return "", fmt.Errorf("%s is not Loki but %s", bin, info.Path)
}

func (s *Server) checkVersion(minMajor int) error {
	if s.Major() < minMajor {
		return fmt.Errorf("%w: needed is %d.x, this is %s", ErrTooOld, minMajor, s.version)
	}
	return nil
}

// prepare makes the working directory with rules, and the command line.
func (s *Server) prepare(o Options, root string) error {
	major := strconv.Itoa(s.Major())
	config, ok := configFiles[major]
	if !ok {
		return fmt.Errorf("no configuration for Loki %s", s.version)
	}
	s.args = []string{"-config.file=" + filepath.Join(root, config), "-config.expand-env"}
	rulesOf := "fake"
	if o.Tenant != "" {
		s.args = append(s.args, "-auth.enabled=true")
		rulesOf = o.Tenant
	}
	s.args = append(s.args, o.Args...)

	var err error
	if o.Dir != "" {
		s.keepDir = true
		s.dir, err = filepath.Abs(o.Dir)
	} else {
		s.dir, err = os.MkdirTemp("", "loki-"+s.version+"-")
	}
	if err != nil {
		return err
	}
	rules := filepath.Join(s.dir, "rules", rulesOf)
	if err := os.MkdirAll(rules, 0o755); err != nil {
		return err
	}
	for _, name := range o.RuleFiles {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(rules, filepath.Base(name)), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// choosePorts finds two free ports: Loki 2.2.1 can't say which port it got where it is told 0.
func (s *Server) choosePorts() error {
	var ports [2]int
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close() // both are open until both are known, so they differ
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	s.url = fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	s.env = append(os.Environ(),
		fmt.Sprintf("LOKI_HTTP_PORT=%d", ports[0]),
		fmt.Sprintf("LOKI_GRPC_PORT=%d", ports[1]))
	return nil
}

// startChild runs Loki and waits until it is ready. What fails is ended, and its log is in the error.
func (s *Server) startChild(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(s.dir, logFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own handle
	cmd := exec.Command(s.bin, s.args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	cmd.Stdout, cmd.Stderr = log, log
	c, err := proc.Start(cmd, s.outlive)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.child = c
	s.mu.Unlock()
	if err := s.waitReady(ctx, c.Ended()); err != nil {
		c.Kill()
		return fmt.Errorf("%s did not start: %w; %s ends with:\n%s", s.bin, err, filepath.Join(s.dir, logFile), s.LogTail())
	}
	return nil
}

// waitReady polls /ready until it answers 200, the process ends or the time is up.
func (s *Server) waitReady(ctx context.Context, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, s.ready)
	defer cancel()
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	said := "nothing"
	for {
		body, err := s.get(ctx, "/ready", nil)
		switch {
		case err == nil && strings.TrimSpace(string(body)) == "ready":
			return nil
		case err == nil:
			said = strconv.Quote(string(body))
		case !errors.Is(err, context.DeadlineExceeded):
			said = err.Error()
		}
		select {
		case <-ended:
			return errors.New("it has ended")
		case <-ctx.Done():
			return fmt.Errorf("not ready in time (%w); /ready said: %s", ctx.Err(), said)
		case <-poll.C:
		}
	}
}

// askVersion finds the version of a Loki that was not started here.
func (s *Server) askVersion(ctx context.Context) (string, error) {
	var info struct {
		Version string `json:"version"`
	}
	err := s.getJSON(ctx, "/loki/api/v1/status/buildinfo", nil, &info)
	var status *StatusError
	if errors.As(err, &status) && status.Status == http.StatusNotFound {
		return "2", nil // the page is younger than 2.2
	}
	if m := versionOutput.FindStringSubmatch("version " + info.Version); err == nil && m != nil {
		return m[1], nil
	}
	if err != nil {
		return "", err
	}
	config, err := s.get(ctx, "/config", nil)
	if err != nil {
		return "", err
	}
	if strings.Contains(string(config), "\npattern_ingester:") { // since 3.0
		return "3", nil
	}
	return "2", nil
}

// readAll reads an answer; one of more than 256 MiB is cut.
func readAll(r io.Reader) ([]byte, error) { return io.ReadAll(io.LimitReader(r, 256<<20)) }
