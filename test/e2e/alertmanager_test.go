package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"flink-loki/test/agent"
	"flink-loki/test/lokitest"
	"flink-loki/test/proc"
)

// notified is an alert as Alertmanager gives it to a webhook, or shows it.
type notified struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	// Status is "firing" or "resolved" at a webhook, an object elsewhere.
	Status json.RawMessage `json:"status"`
}

// webhook takes what Alertmanager sends.
type webhook struct {
	mu     sync.Mutex
	alerts []notified
	faults []string
}

func (w *webhook) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var message struct {
		Alerts []notified `json:"alerts"`
	}
	err := json.NewDecoder(r.Body).Decode(&message)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.faults = append(w.faults, err.Error())
	}
	w.alerts = append(w.alerts, message.Alerts...)
}

func (w *webhook) received() ([]notified, []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.alerts), w.faults
}

// groupWait is how long Alertmanager waits here for better alerts of a failure.
const groupWait = 5 * time.Second

// alertmanagerProgram finds Alertmanager. Without it the test is skipped, but not in CI.
func alertmanagerProgram(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an Alertmanager, a Loki and the built plug-in")
	}
	for _, name := range []string{os.Getenv("ALERTMANAGER_BIN"), "prometheus-alertmanager", "alertmanager"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const missing = "no Alertmanager: apt-get install --no-install-recommends prometheus-alertmanager, or set ALERTMANAGER_BIN"
	if os.Getenv("CI") != "" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// alertmanagerConfig is the shipped file, with its route and a receiver.
func alertmanagerConfig(t *testing.T, receiver string) string {
	t.Helper()
	text, err := os.ReadFile("../../rules/alertmanager.yaml")
	if err != nil {
		t.Fatal(err)
	}
	route := regexp.MustCompile(`(?m)^#   route:\n(?:#   .*\n)+`).FindString(string(text))
	if !strings.Contains(route, "group_wait: 2m") {
		t.Fatalf("the shipped route waits otherwise: %q", route)
	}
	route = strings.ReplaceAll(strings.ReplaceAll(route, "#   ", ""), "2m", groupWait.String())
	return route + fmt.Sprintf("receivers: [{name: default, webhook_configs: [{url: %q}]}]\n", receiver) + string(text)
}

// startAlertmanager starts an Alertmanager and returns its address.
func startAlertmanager(t *testing.T, receiver string) string {
	t.Helper()
	program := alertmanagerProgram(t)
	dir := t.TempDir()
	config := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(config, []byte(alertmanagerConfig(t, receiver)), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	logName := filepath.Join(dir, "alertmanager.log")
	log, err := os.Create(logName)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // the child has its own
	cmd := exec.Command(program, "--config.file="+config, "--storage.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--cluster.listen-address=")
	cmd.Stdout, cmd.Stderr = log, log
	p, err := proc.Start(cmd, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if said, err := os.ReadFile(logName); err == nil && t.Failed() {
			t.Logf("%s", said)
		}
	})
	await(t, func() bool {
		answer, err := http.Get("http://" + address + "/-/ready")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	return "http://" + address
}

// TestAlertmanager sends the log lines of three clusters on their whole way: through the plug-in into Loki,
// whose ruler raises alerts, by Alertmanager with the shipped inhibition to a webhook. Of each failure comes
// one alert of a severity, and it says what there is to say.
func TestAlertmanager(t *testing.T) {
	hook := &webhook{}
	receiver := httptest.NewServer(hook)
	t.Cleanup(receiver.Close)
	alertmanager := startAlertmanager(t, receiver.URL)
	names, err := filepath.Glob("../../rules/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return filepath.Base(name) == "alertmanager.yaml" })
	loki := startLoki(t, lokitest.Options{
		RuleFiles: names,
		Args:      []string{"-ruler.alertmanager-url=" + alertmanager, "-ruler.alertmanager-use-v2=true"},
	})
	// The ruler drops alerts until it has discovered Alertmanager, and then sends them again after a minute.
	discovered := regexp.MustCompile(`(?m)_prometheus_notifications_alertmanagers_discovered\{.*\} 1$`)
	await(t, func() bool {
		answer, err := http.Get(loki.URL() + "/metrics")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return discovered.Match(text)
	})
	cases := []struct {
		cluster, log string
		lines        int // how much of the log; 0 is all
		alert        string
		summary      string
		description  string
	}{
		// Checkpoint 3 has expired, and a task has answered since. The story is not over, so there is no summary yet.
		{
			"started", "2.3.0/expired/jobmanager.log", 263, "FlinkCheckpointExpiredWithLateMessages",
			"Checkpoint 3 of job orders expiring (fef61425e149c9b56545204c60d72fcc) in started expired; late messages after it: 1",
			"The tasks that sent them finished their snapshot after the timeout. ",
		},
		// Checkpoint 3 was declined, 4 is complete.
		{
			"declined", "2.3.0/declined/jobmanager.log", 286, "FlinkCheckpointFailed",
			"Checkpoint 3 of job orders declining (5a9c33f6f8742709b0190115e8e7a4e3) in declined failed (declined) by ",
			"Last good checkpoint: 2.",
		},
		// Nine failures are one ticket.
		{
			"expired", "2.3.0/expired/jobmanager.log", 0, "FlinkCheckpointFailuresInWindow",
			"9 checkpoints of job orders expiring (fef61425e149c9b56545204c60d72fcc) in expired failed within 10m",
			"The events checkpoint_failure_summary say of each why, and which tasks were slow.",
		},
	}
	for _, c := range cases {
		a := startAgent(t, agent.Options{"url": loki.URL(), "label_keys": strictOrder, "labels": "cluster=" + c.cluster})
		p := shifted(t, c.log, 1)[0]
		if c.lines > 0 {
			p.Count = c.lines
		}
		send(t, a, p)
		if err := a.Stop(); err != nil {
			t.Error(err)
		}
	}
	await(t, func() bool {
		got, _ := hook.received()
		return len(got) >= len(cases)
	})
	time.Sleep(groupWait + 2*time.Second) // what else there is would come now
	got, faults := hook.received()
	for _, fault := range faults {
		t.Error("what the webhook gets:", fault)
	}
	for _, c := range cases {
		i := slices.IndexFunc(got, func(a notified) bool { return a.Labels["cluster"] == c.cluster })
		if i < 0 {
			t.Errorf("nothing is sent of %s", c.cluster)
			continue
		}
		a := got[i]
		if a.Labels["alertname"] != c.alert || a.Labels["severity"] != "ticket" || string(a.Status) != `"firing"` ||
			!strings.HasPrefix(a.Annotations["summary"], c.summary) || !strings.Contains(a.Annotations["description"], c.description) ||
			!strings.HasSuffix(a.Annotations["runbook_url"], "#"+strings.ToLower(c.alert)) {
			t.Errorf("%s: %s %v %v", c.cluster, a.Status, a.Labels, a.Annotations)
		}
		t.Logf("%s: %s: %s", c.cluster, a.Labels["alertname"], a.Annotations["summary"])
	}
	if len(got) != len(cases) {
		for _, a := range got {
			t.Errorf("sent: %s %v %v", a.Status, a.Labels, a.Annotations)
		}
	}
	// Inhibition is what left the others out.
	answer, err := http.Get(alertmanager + "/api/v2/alerts?active=false&silenced=false&inhibited=true")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var inhibited []notified
	if err := json.NewDecoder(answer.Body).Decode(&inhibited); err != nil {
		t.Fatal(err)
	}
	left := map[string]int{}
	for _, a := range inhibited {
		left[a.Labels["cluster"]]++
	}
	for _, c := range cases {
		if left[c.cluster] == 0 {
			t.Errorf("%s: no alert is inhibited", c.cluster)
		}
	}
	t.Logf("Loki %s; sent %d, inhibited %v", loki.Version(), len(got), left)
}
