// Package layout tests the shape of the project: what imports what, what the shared
// object brings into the agent, and under which licences.
package layout

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/licensecheck"
)

const root = "../.."

// arrows are the imports that are allowed between the packages of the product. Data
// flows one way; parsers stands alone.
var arrows = map[string][]string{
	"flink-loki/parsers/internal/ascii": {},
	"flink-loki/parsers/layout":         {"flink-loki/parsers/internal/ascii"},
	"flink-loki/parsers":                {"flink-loki/parsers/internal/ascii", "flink-loki/parsers/layout"},
	"flink-loki/plugin/record":          {"flink-loki/parsers/layout"},
	"flink-loki/plugin/enrich":          {"flink-loki/parsers"},
	"flink-loki/plugin/loki":            {"flink-loki/parsers"},
	"flink-loki/plugin/telemetry":       {},
	"flink-loki/plugin/ship":            {"flink-loki/parsers", "flink-loki/parsers/layout", "flink-loki/plugin/record", "flink-loki/plugin/enrich", "flink-loki/plugin/loki", "flink-loki/plugin/telemetry"},
	"flink-loki/plugin":                 {"flink-loki/plugin/ship"},
	"flink-loki/plugin/cmd/flink-loki":  {"flink-loki/parsers", "flink-loki/parsers/layout", "flink-loki/plugin/record", "flink-loki/plugin/enrich", "flink-loki/plugin/loki", "flink-loki/plugin/ship", "flink-loki/rules", "flink-loki/rules/ruletest"},
	"flink-loki/rules":                  {},
	"flink-loki/rules/ruletest":         {"flink-loki/parsers", "flink-loki/plugin/enrich", "flink-loki/plugin/loki"},
}

// impure are packages that parsers may not import: it knows no files, networks, clocks,
// agents or Loki.
var impure = []string{"os", "net", "net/http", "io/fs", "log", "log/slog", "syscall", "flag"}

// forbidden are packages that must not be in the agent's process: they bring global
// metrics, old code with known vulnerabilities, or megabytes.
var forbidden = []string{
	"github.com/grafana/loki-client-go/loki",
	"google.golang.org/grpc",
	"github.com/prometheus/prometheus",
	"github.com/grafana/loki/pkg/push",
}

// maxSharedObject bounds the stripped shared object, in bytes.
const maxSharedObject = 18_000_000

// topLevel is what may stand at the top, besides dot files.
var topLevel = []string{
	"plugin", "parsers", "rules", "build", "test", "go.mod", "go.sum", "Makefile", "README.md", "LICENSE", "CHANGELOG.md",
}

type pkg struct {
	ImportPath string
	Imports    []string
	CgoFiles   []string
	Standard   bool
	Module     *struct{ Path, Version, Dir string }
}

// list runs go list and returns the packages.
func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Imports,CgoFiles,Standard,Module"}, args...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var pkgs []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p pkg
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
	return pkgs
}

func TestArrows(t *testing.T) {
	for _, p := range list(t, "./parsers/...", "./plugin/...", "./rules/...") {
		allowed, known := arrows[p.ImportPath]
		if !known {
			t.Errorf("%s is a new package: say in arrows what it may import", p.ImportPath)
		}
		for _, imported := range p.Imports {
			if strings.HasPrefix(imported, "flink-loki/") && !slices.Contains(allowed, imported) {
				t.Errorf("%s imports %s", p.ImportPath, imported)
			}
			if strings.HasPrefix(p.ImportPath, "flink-loki/parsers") && slices.Contains(impure, imported) {
				t.Errorf("%s imports %s", p.ImportPath, imported)
			}
		}
	}
}

func TestCgoOnlyInTheShell(t *testing.T) {
	for _, p := range list(t, "./parsers/...", "./plugin/...", "./rules/...") {
		if want := p.ImportPath == "flink-loki/plugin"; (len(p.CgoFiles) > 0) != want || len(p.CgoFiles) > 1 {
			t.Errorf("%s has cgo in %v", p.ImportPath, p.CgoFiles)
		}
	}
	for _, p := range list(t, "-deps", "./plugin/cmd/flink-loki") {
		if len(p.CgoFiles) > 0 && !p.Standard {
			t.Errorf("the command-line tool has cgo in %s", p.ImportPath)
		}
	}
}

func TestForbiddenImports(t *testing.T) {
	for _, p := range list(t, "-deps", "./plugin", "./plugin/cmd/flink-loki") {
		for _, f := range forbidden {
			if p.ImportPath == f || strings.HasPrefix(p.ImportPath, f+"/") {
				t.Errorf("%s is linked", p.ImportPath)
			}
		}
	}
}

// compatible are the licences that Apache-2.0 may be combined with.
var compatible = []string{"Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MPL-2.0"}

func TestLicences(t *testing.T) {
	modules := map[string]string{} // directory by path
	for _, p := range list(t, "-deps", "./plugin", "./plugin/cmd/flink-loki") {
		if p.Module != nil && p.Module.Path != "flink-loki" {
			modules[p.Module.Path] = p.Module.Dir
		}
	}
	for path, dir := range modules {
		var found []string
		for _, pattern := range []string{"LICENSE*", "LICENCE*", "COPYING*"} {
			files, _ := filepath.Glob(filepath.Join(dir, pattern))
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Error(err)
				}
				for _, match := range licensecheck.Scan(text).Match {
					found = append(found, match.ID)
				}
			}
		}
		if len(found) == 0 {
			t.Errorf("%s has no licence that is known", path)
		}
		for _, id := range found {
			if !slices.Contains(compatible, id) {
				t.Errorf("%s is under %s", path, id)
			}
		}
	}
}

func TestSharedObject_size(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the built plug-in")
	}
	info, err := os.Stat(filepath.Join(root, "build/bin/out_flink_loki.so"))
	if err != nil {
		t.Fatalf("%v: run \"make build\"", err)
	}
	if info.Size() > maxSharedObject {
		t.Errorf("out_flink_loki.so has %d bytes, more than %d", info.Size(), maxSharedObject)
	}
}

func TestTopLevel(t *testing.T) {
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !slices.Contains(topLevel, e.Name()) {
			t.Errorf("%s does not belong at the top", e.Name())
		}
	}
}

// TestNothingEndsTheHost: code of the plug-in may not end the process it is in.
func TestNothingEndsTheHost(t *testing.T) {
	for _, dir := range []string{"plugin", "parsers"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() && d.Name() == "cmd" {
				return filepath.SkipDir
			}
			if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, call := range []string{"panic(", "os.Exit(", "log.Fatal", "runtime.Goexit("} {
				if bytes.Contains(text, []byte(call)) {
					t.Errorf("%s calls %s", path, call)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
