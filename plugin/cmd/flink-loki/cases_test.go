package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestParse_cases runs the inputs that people post through the program and compares
// its answer with the right one: testdata/cases/README.md says how to read it.
func TestParse_cases(t *testing.T) {
	dirs, err := filepath.Glob("testdata/cases/*/expected.json")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, expected := range dirs {
		dir := filepath.Dir(expected)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			inputs, _ := filepath.Glob(filepath.Join(dir, "input*"))
			got := parseJSON(t, inputs...)
			var want []map[string]any
			decode(t, expected, &want)
			for _, fault := range compareCase(want, got) {
				t.Error(fault)
			}
		})
	}
}

// TestCompareCase_faults makes sure that the comparer can fail.
func TestCompareCase_faults(t *testing.T) {
	want := []map[string]any{
		{"line": 1.0, "event": "checkpoint_expired", "required": true, "checkpoint_id": 7.0, "time": "2020-01-01T00:00:00Z"},
	}
	good := map[string]any{"line": 1.0, "event": "checkpoint_expired", "checkpoint_id": 7.0, "time": "2020-01-01T00:00:00.000Z", "message": "m"}
	with := func(key string, value any) []map[string]any {
		e := map[string]any{}
		for k, v := range good {
			e[k] = v
		}
		e[key] = value
		return []map[string]any{e}
	}
	if faults := compareCase(want, []map[string]any{good}); len(faults) != 0 {
		t.Errorf("the right answer is refused: %v", faults)
	}
	for name, got := range map[string][]map[string]any{
		"missed":         nil,
		"wrong number":   with("checkpoint_id", 8.0),
		"wrong line":     with("line", 2.0),
		"wrong time":     with("time", "2020-01-01T01:00:00Z"),
		"invented field": with("job_name", "x"),
		"twice":          {good, good},
	} {
		if len(compareCase(want, got)) == 0 {
			t.Errorf("%s: no fault", name)
		}
	}
}

func parseJSON(t *testing.T, files ...string) []map[string]any {
	t.Helper()
	cmd := parseCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(files)
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	var events []map[string]any
	for line := range bytes.Lines(out.Bytes()) {
		var e map[string]any
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		events = append(events, e)
	}
	return events
}

func decode(t *testing.T, file string, v any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// alwaysAllowed are fields that an answer may have besides the expected ones.
var alwaysAllowed = []string{"component", "message", "thread", "failure_reason", "counted", "savepoint", "filename",
	"record_time", "location", "level", "part"}

// forReader are keys of an expected event that say something to its reader.
var forReader = []string{"required", "notes", "group", "time_of_day", "relative_ms", "source_file", "lsm_state",
	"output_level", "container", "stream"}

// compareCase lists the faults of an answer: each expected event is there once, with
// the fields that are named, and what is there besides is allowed.
func compareCase(want, got []map[string]any) []string {
	var faults []string
	used := make([]bool, len(got))
	groups := map[any]int{}
	for _, w := range want {
		i := slices.IndexFunc(got, func(g map[string]any) bool {
			return g["line"] == w["line"] && g["event"] == w["event"]
		})
		if group, ok := w["group"]; ok {
			if i >= 0 {
				groups[group]++
			} else {
				groups[group] += 0
				continue
			}
		}
		if i < 0 {
			if w["required"] != false {
				faults = append(faults, fmt.Sprintf("line %v: %v is missing", w["line"], w["event"]))
			}
			continue
		}
		if used[i] {
			faults = append(faults, fmt.Sprintf("line %v: %v answers two", w["line"], w["event"]))
		}
		used[i] = true
		faults = append(faults, compareEvent(w, got[i])...)
	}
	for group, n := range groups {
		if n == 0 {
			faults = append(faults, fmt.Sprintf("none of group %v", group))
		}
	}
	for i, g := range got {
		for j := range i {
			if used[i] != used[j] && g["line"] == got[j]["line"] && g["event"] == got[j]["event"] {
				faults = append(faults, fmt.Sprintf("line %v: %v twice", g["line"], g["event"]))
			}
		}
	}
	if len(want) == 0 && len(got) > 0 {
		faults = append(faults, fmt.Sprintf("no event is right here, got %v", got))
	}
	return faults
}

func compareEvent(want, got map[string]any) []string {
	var faults []string
	for key, w := range want {
		if slices.Contains(forReader, key) || strings.HasSuffix(key, "_acceptable") {
			continue
		}
		right := []any{w}
		if others, ok := want[key+"_acceptable"].([]any); ok {
			right = append(right, others...)
		}
		if !slices.ContainsFunc(right, func(r any) bool { return sameValue(key, r, got[key]) }) {
			faults = append(faults, fmt.Sprintf("line %v %v: %s is %v, want %v", want["line"], want["event"], key, got[key], w))
		}
	}
	for key := range got {
		_, named := want[key]
		_, other := want[key+"_acceptable"]
		if !named && !other && !slices.Contains(alwaysAllowed, key) {
			faults = append(faults, fmt.Sprintf("line %v %v: %s=%v is not in the answer", want["line"], want["event"], key, got[key]))
		}
	}
	return faults
}

func sameValue(key string, want, got any) bool {
	if w, ok := want.(float64); ok {
		g, ok := got.(float64)
		return ok && math.Abs(w-g) < 0.001
	}
	if strings.HasSuffix(key, "time") {
		w, err1 := time.Parse(time.RFC3339Nano, fmt.Sprint(want))
		g, err2 := time.Parse(time.RFC3339Nano, fmt.Sprint(got))
		return err1 == nil && err2 == nil && w.Equal(g)
	}
	return reflect.DeepEqual(want, got)
}
