package agent

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"flink-loki/test/proc"
)

// answerTimeout bounds how long the host may take for an answer: above any flush.
const answerTimeout = 30 * time.Second

// host is an agent in the C host of test/host. Its chunks survive a restart, as those
// of Fluent Bit's filesystem storage do: a part is framed anew to the same bytes.
type host struct {
	dir     string
	options Options
	so, bin string

	process *proc.Process
	in      io.WriteCloser
	answers chan string
	log     *os.File
	framed  map[string]bool
}

// NewHost returns an agent in the C host.
func NewHost(dir string, options Options) (Agent, error) {
	h := &host{dir: dir, options: options}
	var err error
	if h.so, err = Built("out_flink_loki.so"); err != nil {
		return nil, err
	}
	h.bin, err = Built("host")
	return h, err
}

func (h *host) Start() error {
	var err error
	if h.log, err = os.OpenFile(filepath.Join(h.dir, "host.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	h.framed = map[string]bool{}
	cmd := exec.Command(h.bin, h.so)
	cmd.Stderr = h.log
	if h.in, err = cmd.StdinPipe(); err != nil {
		return err
	}
	// A pipe of our own: that of cmd would be closed by its Wait, answers unread.
	out, stdout, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout = stdout
	h.process, err = proc.Start(cmd, false)
	_ = stdout.Close()
	if err != nil {
		return err
	}
	answers := make(chan string, 100)
	h.answers = answers
	go func() {
		defer close(answers)
		defer out.Close()
		for lines := bufio.NewScanner(out); lines.Scan(); {
			answers <- lines.Text()
		}
	}()
	if err := h.expect("register flink_loki"); err != nil {
		return err
	}
	script := "workers 1\noutput o\n"
	for name, value := range h.options {
		script += fmt.Sprintf("set o %s %s\n", name, value)
	}
	if err := h.tell(script + "init o\n"); err != nil {
		return err
	}
	return h.expect("init o 1")
}

func (h *host) Send(p Part) (bool, error) {
	if !h.framed[p.Name] {
		h.framed[p.Name] = true
		info, err := os.Stat(p.Log)
		if err != nil {
			return false, err
		}
		recordTime := info.ModTime().Unix() // the same at each framing
		if err := h.tell(fmt.Sprintf("frame %s %s %d %d %s %d\n", p.Name, p.Log, p.First, p.Count, p.File, recordTime)); err != nil {
			return false, err
		}
	}
	if err := h.tell(fmt.Sprintf("flush o %s tail.0\n", p.Name)); err != nil {
		return false, err
	}
	answer, err := h.answer()
	if err != nil {
		return false, err
	}
	switch answer {
	case "flush o " + p.Name + " 1":
		return true, nil
	case "flush o " + p.Name + " 2":
		return false, nil
	}
	return false, fmt.Errorf("the host says %q", answer)
}

func (h *host) Retry(p Part) (bool, error) { return h.Send(p) }

func (h *host) Kill() error {
	h.process.Kill()
	return h.log.Close()
}

func (h *host) Stop() error {
	if err := h.tell("exit o\nunregister\nquit\n"); err != nil {
		return err
	}
	if err := h.expect("exit o 1"); err != nil {
		return err
	}
	if err := h.expect("unregister"); err != nil {
		return err
	}
	if err := h.process.Wait(); err != nil {
		return err
	}
	return h.log.Close()
}

func (h *host) tell(script string) error {
	_, err := io.WriteString(h.in, script)
	return h.explain(err)
}

func (h *host) answer() (string, error) {
	select {
	case answer, ok := <-h.answers:
		if !ok {
			return "", h.explain(fmt.Errorf("the host has ended: %v", h.process.Wait()))
		}
		return answer, nil
	case <-time.After(answerTimeout):
		return "", h.explain(fmt.Errorf("no answer within %v", answerTimeout))
	}
}

func (h *host) expect(want string) error {
	answer, err := h.answer()
	if err == nil && answer != want {
		err = h.explain(fmt.Errorf("the host says %q, want %q", answer, want))
	}
	return err
}

// explain adds what the plug-in has logged.
func (h *host) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w\n%s", err, tail(filepath.Join(h.dir, "host.log")))
}

func tail(file string) string {
	b, _ := os.ReadFile(file)
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
