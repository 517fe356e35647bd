package rules

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
)

// Setting is what can be set in the rules.
type Setting struct {
	Name, Default string
	// Doc says what it sets.
	Doc string
	// Global settings are one for all jobs.
	Global bool

	check func(value string) error
}

// Settings are all thresholds and windows of the rules.
var Settings = []Setting{
	{Name: "in_a_row", Default: "3", check: number, Doc: "failures in a row of one job that page"},
	{Name: "in_a_row_window", Default: "1h", check: duration, Doc: "how long such a page stays without a further failure; longer than the longest checkpoint interval"},
	{Name: "failures", Default: "3", check: number, Doc: "failures of one job within window"},
	{Name: "window", Default: "10m", check: duration, Doc: "see failures"},
	{Name: "total_failures", Default: "10", check: number, Doc: "failures of one job within total_window"},
	{Name: "total_window", Default: "1d", check: duration, Doc: "see total_failures"},
	{Name: "platform_failures", Default: "3", check: number, Global: true, Doc: "failures of one job within platform_window, whatever its users set"},
	{Name: "platform_window", Default: "15m", check: duration, Global: true, Doc: "see platform_failures"},
	{Name: "fleet_jobs", Default: "10", check: number, Global: true, Doc: "jobs with failures within fleet_window"},
	{Name: "fleet_window", Default: "10m", check: duration, Global: true, Doc: "see fleet_jobs"},
	{Name: "slow_sync_ms", Default: "10000", check: number, Doc: "synchronous part of a snapshot that is slow (ms)"},
	{Name: "slow_async_ms", Default: "300000", check: number, Doc: "asynchronous part of a snapshot that is slow (ms)"},
	{Name: "slow_rocksdb_ms", Default: "30000", check: number, Doc: "snapshot of RocksDB that is slow (ms)"},
	{Name: "kafka_failures", Default: "5", check: number, Doc: "failed fetches of a job's Kafka sources within lookback, beside an expired checkpoint"},
	{Name: "restarts", Default: "3", check: number, Doc: "restarts of one job within restart_window"},
	{Name: "restart_window", Default: "15m", check: duration, Doc: "see restarts"},
	{Name: "skew_checkpoints", Default: "5", check: number, Doc: "checkpoints for which the same subtask of a task was late, and no other, within skew_window"},
	{Name: "skew_window", Default: "1h", check: duration, Doc: "see skew_checkpoints"},
	{Name: "near_timeout_ms", Default: "300000", check: number, Doc: "duration of completed checkpoints that is near the timeout (ms); half of Flink's default timeout"},
	{Name: "rising_percent", Default: "150", check: number, Doc: "of its mean over trend_window, how long checkpoints near the timeout take now"},
	{Name: "trend_window", Default: "6h", check: duration, Doc: "see rising_percent"},
	{Name: "pauseless_percent", Default: "90", check: number, Doc: "share of the time between triggers that completed checkpoints take"},
	{Name: "pauseless_window", Default: "1h", check: duration, Doc: "see pauseless_percent; at least three of them are in it"},
	{Name: "late_start_ms", Default: "30000", check: number, Doc: "from a checkpoint's trigger to its start on a task, by the reported metric (ms)"},
	{Name: "overdue_window", Default: "1d", check: duration, Doc: "how long a page for overdue checkpoints stays where nothing is told of the job any more"},
	{Name: "fresh", Default: "10m", check: duration, Doc: "a job of which a checkpoint completed as lately as this is not overdue"},
	{Name: "agent_silence", Default: "10m", check: duration, Global: true, Doc: "how long an agent that told that it lives may say nothing"},
	{Name: "agent_window", Default: "1h", check: duration, Global: true, Doc: "how long an agent that says nothing is thought to be missing"},
	{Name: "lookback", Default: "15m", check: duration, Doc: "how far back rules about one event look, and how long their alerts stay; longer than events may be late"},
	{Name: "matchers", Default: "", check: matchers, Global: true, Doc: `label matchers for every stream selector, such as cluster="prod"`},
	{Name: "runbook", Default: "https://flink-loki.example/runbook", check: address, Global: true, Doc: "where rules/runbook.md can be read, for runbook_url"},
}

// SettingNames returns the names of all settings.
func SettingNames() []string {
	var names []string
	for _, s := range Settings {
		names = append(names, s.Name)
	}
	return names
}

func settingByName(name string) *Setting {
	i := slices.IndexFunc(Settings, func(s Setting) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &Settings[i]
}

// check returns why a value can't be set.
func check(name, value string) error {
	s := settingByName(name)
	if s == nil {
		return fmt.Errorf("no setting %q: the settings are %s", name, strings.Join(SettingNames(), ", "))
	}
	if err := s.check(value); err != nil {
		return fmt.Errorf("setting %s, value %q: %w", name, value, err)
	}
	return nil
}

func number(value string) error {
	if n, err := strconv.Atoi(value); err != nil || n < 1 {
		return fmt.Errorf("give a whole number above 0")
	}
	return nil
}

// durations are those that Loki takes as a range.
var durations = regexp.MustCompile(`^[1-9]\d*[smhdw]$`)

func duration(value string) error {
	if !durations.MatchString(value) {
		return fmt.Errorf("give a number with s, m, h, d or w, such as 10m")
	}
	return nil
}

const matcher = `[a-zA-Z_]\w*(=|!=|=~|!~)"([^"\\]|\\.)*"`

var matcherList = regexp.MustCompile(`^(` + matcher + `(,\s*` + matcher + `)*)?$`)

func matchers(value string) error {
	if !matcherList.MatchString(value) {
		return fmt.Errorf(`give matchers of LogQL, such as cluster="prod", node=~"tm-.*"`)
	}
	return nil
}

func address(value string) error {
	if u, err := url.Parse(value); err != nil || u.Scheme == "" || u.Host == "" || strings.ContainsAny(value, " \"") {
		return fmt.Errorf("give a URL, such as https://wiki.example/flink-runbook")
	}
	return nil
}

// longer are windows that must be longer than others, or their alerts never fire.
var longer = map[string]string{"agent_window": "agent_silence", "trend_window": "lookback"}

// checkPairs returns why values that are allowed can't be set together.
func checkPairs(values map[string]string) error {
	for _, window := range slices.Sorted(maps.Keys(longer)) {
		other := longer[window]
		a, err := model.ParseDuration(values[window])
		b, err2 := model.ParseDuration(values[other])
		if err == nil && err2 == nil && a <= b {
			return fmt.Errorf("setting %s, value %q: make it longer than %s, which is %s", window, values[window], other, values[other])
		}
	}
	return nil
}
