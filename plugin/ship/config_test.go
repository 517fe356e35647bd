package ship

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"flink-loki/parsers"
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
		for _, text := range append(want, "option "+option) {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s=%q: %q does not say %q", option, value, err, text)
			}
		}
	}
	f("url", "loki:3100", "http://loki:3100")
	f("url", "http://", "http://loki:3100")
	f("url", "ftp://loki", "http://loki:3100")
	f("labels", "prod", "name=value")
	f("labels", "2=x", "letters")
	f("labels", "a-b=x", "letters")
	f("label_keys", "component,job", `"job"`, "job_id")
	f("label_keys", "message", "job_id")
	f("label_keys", "offset", "job_id")
	f("structured_metadata", "maybe", "on or off")
	f("kinds", "default,-checkpoint_expire", `"checkpoint_expire"`, "default, core, all")
	f("timezone", "Mars/Base", "Europe/Berlin")
	f("timeout", "soon", "4s")
	f("timeout", "-1s", "4s")
	f("timeout", "0", "4s")
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
	for _, taken := range []string{"match", "match_regex", "alias", "log_level", "log_suppress_interval", "host", "port",
		"ipv6", "retry_limit", "tls", "workers", "storage.total_limit_size"} {
		if seen[taken] {
			t.Errorf("option %s never reaches a plug-in", taken)
		}
	}
}
