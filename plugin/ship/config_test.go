package ship

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"flink-loki/parsers"
	"flink-loki/parsers/layout"
)

// fakeConfig is a configuration as Fluent Bit answers for it: "" for what is not set.
type fakeConfig map[string]string

func (c fakeConfig) get(name string) string { return c[name] }

func TestReadConfig_defaults(t *testing.T) {
	c, err := ReadConfig(fakeConfig{}.get)
	if err != nil {
		t.Fatal(err)
	}
	if c.URL.String() != "http://localhost:3100" || c.Timeout != 4*time.Second || c.LogLevel != slog.LevelInfo ||
		c.Location != time.Local || c.Node == "" || c.Placement.Metadata {
		t.Errorf("got %+v", c)
	}
	want := []parsers.Field{parsers.Component, parsers.EventName, parsers.Level}
	for i, f := range want {
		if len(c.Placement.LabelKeys) != len(want) || c.Placement.LabelKeys[i] != f {
			t.Errorf("label_keys are %v", c.Placement.LabelKeys)
		}
	}
}

func TestReadConfig_values(t *testing.T) {
	c, err := ReadConfig(fakeConfig{
		"url":                 "https://loki.example/prefix/push",
		"labels":              " cluster=prod, team = data ",
		"label_keys":          "event, job_id ,event",
		"structured_metadata": "On",
		"node":                "host-1",
		"timezone":            "Europe/Berlin",
		"timeout":             "2",
		"plugin_log_level":    "Debug",
	}.get)
	if err != nil {
		t.Fatal(err)
	}
	if c.URL.Path != "/prefix/push" || c.Timeout != 2*time.Second || c.LogLevel != slog.LevelDebug || c.Node != "host-1" ||
		c.Location.String() != "Europe/Berlin" || !c.Placement.Metadata || len(c.Placement.LabelKeys) != 2 ||
		c.Placement.Labels.String() != `{cluster="prod", team="data"}` {
		t.Errorf("got %+v", c)
	}
}

func TestReadConfig_kinds(t *testing.T) {
	f := func(value string, has, hasNot string) {
		t.Helper()
		c, err := ReadConfig(fakeConfig{"kinds": value}.get)
		if err != nil {
			t.Fatal(err)
		}
		if !c.Kinds[has] || c.Kinds[hasNot] {
			t.Errorf("kinds=%s: %s is %v, %s is %v", value, has, c.Kinds[has], hasNot, c.Kinds[hasNot])
		}
	}
	f("", "task_deploying", "barrier_received")
	f("core", "checkpoint_expired", "task_deploying")
	f("all", "barrier_received", "")
	f("default,+barrier_received,-task_deploying", "barrier_received", "task_deploying")
	f("checkpoint_expired, checkpoint_declined", "checkpoint_declined", "checkpoint_completed")
	f("default", "checkpoint_expired", "unrecognised")
	f("default, +unrecognised", "checkpoint_expired", "barrier_received")
	f("default, +unrecognised", "unrecognised", "barrier_received")
	f("+unrecognised", "unrecognised", "barrier_received") // to the default, as other lists
	f("+unrecognised", "checkpoint_expired", "barrier_received")
	f("-task_deploying", "checkpoint_expired", "task_deploying")
	f("unrecognised", "unrecognised", "checkpoint_expired")
}

func TestReadConfig_recordFields(t *testing.T) {
	const defaults = "namespace=kubernetes.namespace_name pod=kubernetes.pod_name container=kubernetes.container_name node=kubernetes.host"
	f := func(value, want string) {
		t.Helper()
		c, err := ReadConfig(fakeConfig{"record_fields": value}.get)
		if err != nil {
			t.Error(err)
			return
		}
		var got []string
		for _, f := range c.RecordFields {
			got = append(got, parsers.Fields[f.Field].Name+"="+f.Path)
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("record_fields=%s: got %s, want %s", value, got, want)
		}
		if n := len(c.RecordFields); len(c.Keys.Fields) != n+1 || c.Keys.Fields[n] != "url" {
			t.Errorf("record_fields=%s: keys are %q", value, c.Keys.Fields)
		}
	}
	f("", defaults)
	f("+", defaults)
	f("pod=k8s.pod", "pod=k8s.pod")
	f(" pod = k8s.pod , node=host,", "pod=k8s.pod node=host")
	f("+application_id=app", defaults+" application_id=app")
	f("+ application_id=app, pod=name", defaults+" application_id=app pod=name")
	f("pod=$kubernetes['pod_name']", "pod=kubernetes.pod_name")
	f("job_name=$kubernetes['labels']['app.kubernetes.io/name'],pod=$pod", "job_name=kubernetes.labels.app.kubernetes.io/name pod=pod")
}

func TestReadConfig_jsonKeys(t *testing.T) {
	f := func(value string, want map[string]layout.Part) {
		t.Helper()
		c, err := ReadConfig(fakeConfig{"json_keys": value}.get)
		if err != nil {
			t.Error(err)
			return
		}
		want["logger_name"] = layout.Logger // of the usual layouts
		for path, part := range want {
			if got := c.Keys.Parts.Part([]byte(path)); got != part {
				t.Errorf("json_keys=%s: %s is part %d, want %d", value, path, got, part)
			}
		}
	}
	f("", map[string]layout.Part{"text": layout.NoPart})
	f("message=text", map[string]layout.Part{"text": layout.Message, "message": layout.Message})
	f(" message = text , logger=log.name,", map[string]layout.Part{"text": layout.Message, "log.name": layout.Logger})
	f("time=$a['b'],level=c,thread=d,trace=e", map[string]layout.Part{"a.b": layout.Stamp, "c": layout.Level, "d": layout.Thread, "e": layout.Trace})
}

func TestReadConfig_metrics(t *testing.T) {
	for value, want := range map[string][]string{
		"":                       nil,
		"numRestarts":            {"numRestarts"},
		"a, b.c  *d,":            {"a", "b.c", "*d"},
		"+uptime, +Status.JVM.*": {"+uptime", "+Status.JVM.*"},
		"*":                      {"*"},
	} {
		c, err := ReadConfig(fakeConfig{"metrics": value}.get)
		if err != nil || !slices.Equal(c.Metrics, want) {
			t.Errorf("metrics=%s: got %q, %v", value, c.Metrics, err)
		}
	}
}

func TestReadConfig_timezone(t *testing.T) {
	for value, want := range map[string]struct {
		zone  *time.Location
		learn bool
	}{"": {time.Local, false}, "auto": {time.Local, true}, "AUTO": {time.Local, true}, "UTC": {time.UTC, false}} {
		c, err := ReadConfig(fakeConfig{"timezone": value}.get)
		if err != nil || c.Location != want.zone || c.LearnZone != want.learn {
			t.Errorf("timezone=%s: %v, learnt %v, %v", value, c.Location, c.LearnZone, err)
		}
	}
}

// TestReadConfig_rendering: outputs that share a state_path are told apart by all that
// changes what they send.
func TestReadConfig_rendering(t *testing.T) {
	plain, _ := ReadConfig(fakeConfig{}.get)
	for option, value := range map[string]string{"record_fields": "+host=h", "json_keys": "message=text", "metrics": "*", "kinds": "all",
		"timezone": "auto", "node": "n", "labels": "a=b", "url": "http://other"} {
		if c, err := ReadConfig(fakeConfig{option: value}.get); err != nil || c.rendering == plain.rendering {
			t.Errorf("%s=%s renders as without it, or %v", option, value, err)
		}
	}
	for option, value := range map[string]string{"timeout": "1s", "state_path": "/x", "plugin_log_level": "debug"} {
		if c, err := ReadConfig(fakeConfig{option: value}.get); err != nil || c.rendering != plain.rendering {
			t.Errorf("%s=%s renders in another way, or %v", option, value, err)
		}
	}
}

// TestReadConfig_refused gives each option a value that it can't have: the error names
// the option and says what is allowed.
func TestReadConfig_refused(t *testing.T) {
	f := func(option, value string, want ...string) {
		t.Helper()
		_, err := ReadConfig(fakeConfig{option: value}.get)
		if err == nil {
			t.Errorf("%s=%q is accepted", option, value)
			return
		}
		for _, text := range append(want, fmt.Sprintf("option %s, value %q: ", option, value)) {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s=%q: %q does not say %q", option, value, err, text)
			}
		}
	}
	f("url", "loki:3100", "http://loki:3100")
	f("url", "http://", "http://loki:3100")
	f("url", "ftp://loki", "http://loki:3100")
	for _, tenant := range []string{"a/b", "ü", "a b", "..", "a|b", "a\nb", strings.Repeat("x", 151)} {
		f("tenant_id", tenant, "150 bytes", "letters")
	}
	f("timeout", "1ns", "50ms")
	f("timeout", "0", "50ms")
	f("intervals_path", "/dev/null", "no regular file")
	f("labels", "prod", "name=value")
	f("labels", "2=x", "letters")
	f("labels", "a-b=x", "letters")
	f("label_keys", "component,job", `"job"`, "job_id")
	f("label_keys", "message", "job_id")
	f("label_keys", "offset", "job_id")
	f("structured_metadata", "maybe", "on or off")
	f("kinds", "default,-checkpoint_expire", `"checkpoint_expire"`, "default, core, all")
	f("record_fields", "pods=kubernetes.pod_name", `"pods"`, "pod=kubernetes.pod_name")
	f("record_fields", "message=text", `"message"`, "pod=kubernetes.pod_name")
	f("record_fields", "event=kind", `"event"`, "pod=kubernetes.pod_name")
	f("record_fields", "pod", `"pod"`, "give field=key")
	f("record_fields", "+node=n,pod=", `"pod="`, "give field=key")
	f("record_fields", "=x", `""`, "pod=kubernetes.pod_name")
	f("json_keys", "text=message", `"text"`, "time, level, thread, logger, message, trace")
	f("json_keys", "message", `"message"`, "message=text")
	f("json_keys", "message=", `"message="`, "message=text")
	f("json_keys", "=text", `""`, "time, level, thread, logger, message, trace")
	f("metrics", "a,.x", `".x"`, "numRestarts")
	f("metrics", "+", `"+"`, "numRestarts")
	f("metrics", "a,+b", "with it on all")
	f("kinds", "+", "default, core, all")
	f("kinds", "default,,core", "default, core, all")
	f("timezone", "Mars/Base", "Europe/Berlin", "auto")
	f("timezone", "CET+1", "Europe/Berlin", "auto")
	f("timeout", "soon", "4s")
	f("timeout", "-1s", "4s")
	f("timeout", "0", "4s")
	f("max_label_values", "0", "above 0")
	f("max_label_values", "many", "above 0")
	f("dead_letter_size", "0", "64MB")
	f("dead_letter_size", "big", "64MB")
	f("max_procs", "0", "above 0")
	f("memory_limit", "1MB", "64MB or more")
	f("plugin_log_level", "loud", "debug")
	f("plugin_log_level", "info+1", "debug")
}

func TestReadConfig_allFaultsAtOnce(t *testing.T) {
	_, err := ReadConfig(fakeConfig{"timeout": "x", "timezone": "y"}.get)
	if err == nil || !strings.Contains(err.Error(), "timeout") || !strings.Contains(err.Error(), "timezone") {
		t.Errorf("got %v", err)
	}
}

func TestReadConfig_hidesPasswords(t *testing.T) {
	for _, url := range []string{"ftp://user:secret@loki", "http://user:secret@lo ki", "http://user:secret@loki:99999999"} {
		if _, err := ReadConfig(fakeConfig{"url": url}.get); err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%v", err)
		}
	}
}

func TestOptions(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range Options {
		if o.Name != strings.ToLower(o.Name) || seen[o.Name] || o.Unit == "" || !strings.HasSuffix(o.Help, ".") {
			t.Errorf("option %+v", o)
		}
		seen[o.Name] = true
	}
	// Names that Fluent Bit keeps to itself (src/flb_output.c, flb_output_set_property).
	for name := range seen {
		for _, prefix := range []string{"net.", "oauth2", "_debug.http.", "tls."} {
			if strings.HasPrefix(name, prefix) {
				t.Errorf("option %s never reaches a plug-in", name)
			}
		}
	}
	for _, taken := range []string{"match", "match_regex", "alias", "log_level", "log_suppress_interval", "host", "port",
		"ipv6", "retry_limit", "tls", "workers", "storage.total_limit_size"} {
		if seen[taken] {
			t.Errorf("option %s never reaches a plug-in", taken)
		}
	}
}
