package agent

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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
func NewFluentBit(bin, dir string, outputs ...Options) (Agent, error) {
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
  hot_reload: on
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
`, dir, so)
	for _, options := range outputs {
		fmt.Fprintf(&b, "    - name: flink_loki\n      match: flink\n      workers: %s\n      retry_limit: no_limits\n", options.workers())
		for _, name := range slices.Sorted(maps.Keys(options)) {
			if name != "workers" {
				fmt.Fprintf(&b, "      %s: %q\n", name, options[name])
			}
		}
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
	return f.ready(before)
}

func (f *fluentBit) Reload() error {
	before := f.logged(ready)
	if err := syscall.Kill(f.process.Pid, syscall.SIGHUP); err != nil {
		return err
	}
	return errors.Join(f.ready(before), f.alive())
}

// ready waits until the engine has said that it runs, once more than before.
func (f *fluentBit) ready(before int) error {
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

// Send appends the parts to their files: the base name of Part.File, in the agent's
// directory.
func (f *fluentBit) Send(parts ...Part) (bool, error) {
	for _, p := range parts {
		if err := f.append(p); err != nil {
			return false, err
		}
	}
	time.Sleep(1500 * time.Millisecond) // the next chunk is another one: Fluent Bit flushes each second
	return false, f.alive()
}

func (f *fluentBit) append(p Part) error {
	text, err := p.Text()
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(f.dir, filepath.Base(p.File)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
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
