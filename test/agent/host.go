package agent

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"flink-loki/test/chunk"
	"flink-loki/test/proc"
)

// answerTimeout bounds how long the host may take for an answer: above any flush.
const answerTimeout = 30 * time.Second

// host is an agent in the C host of test/host. Its chunks survive a restart, as those
// of Fluent Bit's filesystem storage do: a part is framed anew to the same bytes.
type host struct {
	dir     string
	outputs []Options
	so, bin string

	process   *proc.Process
	in        io.WriteCloser
	answers   chan string
	log       *os.File
	framed    map[string]bool
	reloads   int             // of the process
	delivered map[string]bool // by output and part
}

// NewHost returns an agent in the C host.
func NewHost(dir string, outputs ...Options) (Agent, error) {
	h := &host{dir: dir, outputs: outputs, delivered: map[string]bool{}}
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
	h.reloads = 0
	if err := h.tell("workers " + h.outputs[0].workers() + "\n"); err != nil {
		return err
	}
	return h.init()
}

// name is what the host calls an output. Each reload begins new ones.
func (h *host) name(output int) string { return fmt.Sprintf("o%d.%d", output, h.reloads) }

func (h *host) init() error {
	for i, options := range h.outputs {
		script := fmt.Sprintf("output %s\n", h.name(i))
		for name, value := range options {
			script += fmt.Sprintf("set %s %s %s\n", h.name(i), name, value)
		}
		if err := h.tell(fmt.Sprintf("%sinit %s\n", script, h.name(i))); err != nil {
			return err
		}
		if err := h.expect(fmt.Sprintf("init %s 1", h.name(i))); err != nil {
			return err
		}
	}
	return nil
}

func (h *host) exit() error {
	for i := range h.outputs {
		if err := h.tell(fmt.Sprintf("exit %s\n", h.name(i))); err != nil {
			return err
		}
		if err := h.expect(fmt.Sprintf("exit %s 1", h.name(i))); err != nil {
			return err
		}
	}
	return nil
}

func (h *host) Reload() error {
	if err := h.exit(); err != nil {
		return err
	}
	h.reloads++
	return h.init()
}

func (h *host) Send(parts ...Part) (bool, error) {
	for _, p := range parts {
		for output := range h.outputs {
			delete(h.delivered, fmt.Sprint(output, p.Name))
		}
	}
	return h.flush(parts...)
}

func (h *host) Retry(p Part) (bool, error) { return h.flush(p) }

// flush gives the parts to the outputs that have not delivered them, all at once.
func (h *host) flush(parts ...Part) (delivered bool, err error) {
	asked := map[string]string{} // what the host will say, and whom that is about
	for _, p := range parts {
		if err := h.frame(p); err != nil {
			return false, err
		}
		for output := range h.outputs {
			who := fmt.Sprint(output, p.Name)
			if h.delivered[who] {
				continue
			}
			asked[fmt.Sprintf("flush %s %s ", h.name(output), p.Name)] = who
			if err := h.tell(fmt.Sprintf("flush %s %s tail.0\n", h.name(output), p.Name)); err != nil {
				return false, err
			}
		}
	}
	delivered = true
	for range len(asked) {
		answer, err := h.answer()
		if err != nil {
			return false, err
		}
		who, ok := asked[strings.TrimRight(answer, "012")]
		switch {
		case ok && strings.HasSuffix(answer, " 1"):
			h.delivered[who] = true
		case ok && strings.HasSuffix(answer, " 2"):
			delivered = false
		default:
			return false, h.explain(fmt.Errorf("the host says %q", answer))
		}
	}
	return delivered, nil
}

// frame makes a part's chunk, where the process does not have it.
func (h *host) frame(p Part) error {
	if h.framed[p.Name] {
		return nil
	}
	h.framed[p.Name] = true
	info, err := os.Stat(p.Log)
	if err != nil {
		return err
	}
	recordTime := info.ModTime() // the same at each framing
	if !p.Torn {
		return h.tell(fmt.Sprintf("frame %s %s %d %d %s %d\n", p.Name, p.Log, p.First, p.Count, p.File, recordTime.Unix()))
	}
	content, err := os.ReadFile(p.Log)
	if err != nil {
		return err
	}
	file := filepath.Join(h.dir, p.Name+".chunk")
	if err := os.WriteFile(file, torn(p, content, recordTime), 0o600); err != nil {
		return err
	}
	return h.tell(fmt.Sprintf("chunk %s %s\n", p.Name, file))
}

// torn makes a part's chunk with pieces in it that are no records: bytes that are no
// MessagePack, another shape, and a record that is cut short.
func torn(p Part, log []byte, at time.Time) []byte {
	whole := chunk.Append(nil, chunk.Record{Time: at, Line: strings.Repeat("a line that is no event ", 20), Filename: p.File, Offset: 0})
	pieces := [][]byte{[]byte("\xc1\xff\xc1 no MessagePack"), {0x93, 1, 2, 3}, whole[:len(whole)/2]}
	var b []byte
	number, offset := 0, int64(0)
	for line := range bytes.Lines(log) {
		if number++; number >= p.First && number < p.First+p.Count {
			b = chunk.Append(b, chunk.Record{Time: at, Line: string(bytes.TrimSuffix(line, []byte("\n"))), Filename: p.File, Offset: offset})
			if number%20 == 0 {
				b = append(b, pieces[number/20%len(pieces)]...)
			}
		}
		offset += int64(len(line))
	}
	return append(b, pieces[2]...)
}

func (h *host) Kill() error {
	h.process.Kill()
	return h.log.Close()
}

func (h *host) Stop() error {
	if err := h.exit(); err != nil {
		return err
	}
	if err := h.tell("unregister\nquit\n"); err != nil {
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
