package agent

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"flink-loki/test/proc"
)

// fluentBit is a real Fluent Bit that tails files in its directory, configured as the
// shipped configurations are.
type fluentBit struct {
	bin, dir, config string
	process          *proc.Process
	log              *os.File
}

// NewFluentBit returns an agent in a real Fluent Bit, whose binary is given.
func NewFluentBit(bin, dir string, options Options) (Agent, error) {
	so, err := Built("out_flink_loki.so")
	if err != nil {
		return nil, err
	}
	f := &fluentBit{bin: bin, dir: dir, config: filepath.Join(dir, "fluent-bit.yaml")}
	var b strings.Builder
	fmt.Fprintf(&b, `service:
  flush: 1
  grace: 5
  log_level: info
  storage.path: %[1]s/storage
  storage.sync: normal
  scheduler.base: 1
  scheduler.cap: 2
plugins:
  - %[2]s
pipeline:
  inputs:
    - name: tail
      path: %[1]s/*.log
      exclude_path: %[1]s/fluent-bit.log
      db: %[1]s/tail.db
      storage.type: filesystem
      read_from_head: true
      path_key: filename
      offset_key: offset
      refresh_interval: 1
      tag: flink
  outputs:
    - name: flink_loki
      match: flink
      workers: 1
      retry_limit: no_limits
`, dir, so)
	for _, name := range slices.Sorted(maps.Keys(options)) {
		fmt.Fprintf(&b, "      %s: %q\n", name, options[name])
	}
	return f, os.WriteFile(f.config, []byte(b.String()), 0o600)
}

func (f *fluentBit) Start() error {
	var err error
	if f.log, err = os.OpenFile(filepath.Join(f.dir, "fluent-bit.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	cmd := exec.Command(f.bin, "--config", f.config)
	cmd.Stdout, cmd.Stderr = f.log, f.log
	before := f.logged(ready)
	if f.process, err = proc.Start(cmd, false); err != nil {
		return err
	}
	for deadline := time.Now().Add(startTimeout); f.logged(ready) == before; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("fluent bit is not ready within %v\n%s", startTimeout, tail(f.log.Name()))
		}
	}
	return nil
}

const (
	// ready is what Fluent Bit logs when its engine runs.
	ready        = "Shutdown Grace Period"
	startTimeout = 20 * time.Second
)

// logged counts a text in what the agent has logged.
func (f *fluentBit) logged(text string) int {
	b, _ := os.ReadFile(f.log.Name())
	return strings.Count(string(b), text)
}

// Send appends the part to its file: the base name of Part.File, in the agent's
// directory.
func (f *fluentBit) Send(p Part) (bool, error) {
	text, err := p.Text()
	if err != nil {
		return false, err
	}
	file, err := os.OpenFile(filepath.Join(f.dir, filepath.Base(p.File)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return false, err
	}
	defer file.Close()
	if _, err = file.WriteString(text); err != nil {
		return false, err
	}
	time.Sleep(1500 * time.Millisecond) // the next chunk is another one: Fluent Bit flushes each second
	return false, f.alive()
}

func (f *fluentBit) Retry(Part) (bool, error) { return false, f.alive() }

func (f *fluentBit) alive() error {
	select {
	case <-f.process.Ended():
		return fmt.Errorf("fluent bit has ended: %w\n%s", f.process.Wait(), tail(f.log.Name()))
	default:
		return nil
	}
}

// Pid returns the id of the agent's process.
func (f *fluentBit) Pid() int { return f.process.Pid }

func (f *fluentBit) Kill() error {
	f.process.Kill()
	return f.log.Close()
}

func (f *fluentBit) Stop() error {
	if err := f.process.Terminate(); err != nil {
		return fmt.Errorf("%w\n%s", err, tail(f.log.Name()))
	}
	return f.log.Close()
}
