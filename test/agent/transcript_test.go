package agent

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"flink-loki/parsers"
	"flink-loki/test/fakeloki"
)

// TestTranscripts plays each testdata/*.txt: an agent with the built plug-in, and a
// fake Loki that fails when it is told to. A transcript has one step a line:
//
//	start, kill, stop           the agent
//	part NAME LOG FIRST COUNT   names lines of a log in test/logs
//	loki fail STATUS            from now on, Loki answers that and stores nothing
//	loki hang                   … or answers nothing
//	loki lose                   … or stores, but the answer is lost
//	loki ok                     … or is well
//	send NAME -> ok|retry       gives the agent a part, and what the plug-in must say
//	again NAME -> ok|retry      gives it again; its requests must have the same bytes
//	once                        every event of all parts is stored, once
//
// With FLUENT_BIT set, a real Fluent Bit decides which chunk comes when: there "again"
// does nothing, and neither answers nor bytes are compared.
func TestTranscripts(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the built plug-in and host")
	}
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p := newPlay(t)
			for n, step := range strings.Split(string(text), "\n") {
				words := strings.Fields(step)
				if len(words) == 0 || words[0] == "#" {
					continue
				}
				if err := p.step(words); err != nil {
					t.Fatalf("%s:%d: %s: %v", file, n+1, step, err)
				}
			}
		})
	}
}

// play is a transcript being played.
type play struct {
	t     *testing.T
	loki  *fakeloki.Loki
	agent Agent
	parts map[string]Part
	sent  map[string]bool
	tries map[string][]byte // bodies of a part's first try
}

func newPlay(t *testing.T) *play {
	loki := fakeloki.New(fakeloki.Config{})
	server := httptest.NewServer(loki)
	t.Cleanup(func() {
		loki.Close()
		server.Close()
	})
	dir := t.TempDir()
	agent, err := New(dir, Options{
		"url": server.URL, "timezone": "UTC", "state_path": filepath.Join(dir, "state"), "timeout": "500ms",
	})
	if err != nil {
		t.Fatal(err)
	}
	return &play{t, loki, agent, map[string]Part{}, map[string]bool{}, map[string][]byte{}}
}

func (p *play) step(words []string) error {
	switch words[0] {
	case "start":
		return p.agent.Start()
	case "kill":
		return p.agent.Kill()
	case "stop":
		return p.agent.Stop()
	case "part":
		var part Part
		if _, err := fmt.Sscan(strings.Join(words[1:], " "), &part.Name, &part.Log, &part.First, &part.Count); err != nil {
			return err
		}
		part.File = "/log/" + filepath.Base(part.Log)
		var err error
		part.Log, err = filepath.Abs(filepath.Join("../logs", part.Log))
		p.parts[part.Name] = part
		return err
	case "loki":
		return p.setLoki(words[1:])
	case "send", "again":
		return p.send(words)
	case "once":
		return p.once()
	}
	return fmt.Errorf("no such step")
}

// always is more pushes than a transcript makes.
const always = 1000

func (p *play) setLoki(words []string) error {
	p.loki.ClearFaults()
	switch words[0] {
	case "fail":
		var status int
		if _, err := fmt.Sscan(words[1], &status); err != nil {
			return err
		}
		p.loki.FailNext(always, status, nil, "told to fail")
	case "hang":
		p.loki.HangNext(always)
	case "lose":
		p.loki.StoreButLoseReply(always)
	case "ok":
	default:
		return fmt.Errorf("loki can't %s", words[0])
	}
	return nil
}

func (p *play) send(words []string) error {
	part, ok := p.parts[words[1]]
	if !ok {
		return fmt.Errorf("no part %s", words[1])
	}
	before := len(p.loki.Requests())
	var delivered bool
	var err error
	if words[0] == "again" && Real() {
		delivered, err = p.agent.Retry(part)
	} else {
		delivered, err = p.agent.Send(part)
	}
	if err != nil {
		return err
	}
	p.sent[part.Name] = true
	if Real() {
		return nil
	}
	if want := words[3] == "ok"; delivered != want {
		return fmt.Errorf("delivered is %v", delivered)
	}
	first := p.loki.Requests()[before].Body
	if words[0] == "send" {
		p.tries[part.Name] = first
	} else if !bytes.Equal(first, p.tries[part.Name]) {
		return fmt.Errorf("the bytes differ from those of the first try")
	}
	return nil
}

// once waits until every event is stored, and checks that each is there once.
func (p *play) once() error {
	want := map[string]int{}
	for name := range p.sent {
		part := p.parts[name]
		text, err := part.Text()
		if err != nil {
			return err
		}
		parser, err := parsers.New(parsers.Options{Location: time.UTC})
		if err != nil {
			return err
		}
		source := parser.NewSource(func(e *parsers.Event) {
			want[fmt.Sprintf("%s %s", e.Kind.Name, e.Text(parsers.Message))]++
		})
		source.Record(parsers.Origin{}, []byte(text))
		source.Flush()
	}
	var difference string
	for deadline := time.Now().Add(time.Minute); ; {
		if difference = p.compare(want); difference == "" || !Real() || time.Now().After(deadline) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if difference != "" {
		return fmt.Errorf("%s", difference)
	}
	p.t.Logf("%d parts, %d events, each stored once; %d pushes", len(p.sent), len(p.loki.Entries()), len(p.loki.Requests()))
	return nil
}

func (p *play) compare(want map[string]int) (difference string) {
	got := map[string]int{}
	for _, e := range p.loki.Entries() {
		name, message, err := eventOf(e.Line)
		if err != nil {
			return err.Error()
		}
		got[name+" "+message]++
	}
	for event, n := range want {
		if got[event] != n {
			difference += fmt.Sprintf("%d of %d: %s\n", got[event], n, event)
		}
	}
	for event, n := range got {
		switch isMade := strings.HasPrefix(event, "checkpoint_failure_summary "); {
		case isMade && n > 1:
			difference += fmt.Sprintf("%d times: %s\n", n, event)
		case !isMade && want[event] == 0:
			difference += fmt.Sprintf("not sent: %s\n", event)
		}
	}
	return difference
}
