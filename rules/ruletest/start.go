package ruletest

import (
	"context"
	"debug/buildinfo"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// The configurations of a Loki that is started, by its major version.
var (
	//go:embed loki2.yaml
	config2 []byte
	//go:embed loki3.yaml
	config3 []byte
)

// readyWithin bounds the start of a Loki.
const readyWithin = time.Minute

// Start starts the Loki that a program is, on the loopback and in a directory of its own,
// which [Loki.Close] removes.
func Start(ctx context.Context, program string) (*Loki, error) {
	program, err := exec.LookPath(program)
	if err != nil {
		return nil, err
	}
	if program, err = filepath.Abs(program); err != nil { // it works in another directory
		return nil, err
	}
	version, err := programVersion(ctx, program)
	if err != nil {
		return nil, err
	}
	config := config2
	if strings.HasPrefix(version, "3") {
		config = config3
	}
	dir, err := os.MkdirTemp("", "flink-loki-rules-")
	if err != nil {
		return nil, err
	}
	l, err := startIn(ctx, dir, program, config)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	l.version = version
	return l, nil
}

// startIn starts a Loki that works in a directory.
func startIn(ctx context.Context, dir, program string, config []byte) (*Loki, error) {
	ports, err := freePorts()
	if err != nil {
		return nil, err
	}
	text := strings.NewReplacer("HTTP_PORT", fmt.Sprint(ports[0]), "GRPC_PORT", fmt.Sprint(ports[1])).Replace(string(config))
	if err := os.WriteFile(filepath.Join(dir, "loki.yaml"), []byte(text), 0o600); err != nil {
		return nil, err
	}
	logName := filepath.Join(dir, "loki.log")
	log, err := os.Create(logName)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own
	cmd := exec.Command(program, "-config.file=loki.yaml")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	l := &Loki{URL: fmt.Sprintf("http://127.0.0.1:%d", ports[0]), HasTenants: true}
	l.stop = func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = os.RemoveAll(dir)
	}
	if err := l.await(ctx, ended); err != nil {
		said, _ := os.ReadFile(logName)
		l.stop()
		return nil, fmt.Errorf("%s does not start: %w; it said:\n%s", program, err, said[max(0, len(said)-4096):])
	}
	return l, nil
}

// await waits until Loki is ready.
func (l *Loki) await(ctx context.Context, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.URL+"/ready", nil)
		if err != nil {
			return err
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ended:
			return errors.New("it has ended")
		case <-ctx.Done():
			return errors.New("it is not ready in time")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

var versionOutput = regexp.MustCompile(`version v?([23]\.\d+\.\d+)`)

// programVersion asks a program, and where its builder has not set a version, what Go has
// noted in it.
func programVersion(ctx context.Context, program string) (string, error) {
	out, err := exec.CommandContext(ctx, program, "-version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s -version: %w: %s", program, err, out)
	}
	if m := versionOutput.FindSubmatch(out); m != nil {
		return string(m[1]), nil
	}
	if info, err := buildinfo.ReadFile(program); err == nil && strings.HasPrefix(info.Path, "github.com/grafana/loki/") {
		if strings.HasPrefix(info.Path, "github.com/grafana/loki/v3/") {
			return "3.x", nil
		}
		return "2.x", nil
	}
	return "", fmt.Errorf("%s is no Loki 2.x or 3.x: it said %q", program, out)
}

// freePorts returns two free ports of the loopback.
func freePorts() (ports [2]int, err error) {
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return ports, err
		}
		defer l.Close() // both are open until both are known, so they differ
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}
