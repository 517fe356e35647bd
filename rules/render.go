package rules

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"strings"
)

// File is a rule file of Loki's ruler.
type File struct {
	Name string
	Text []byte
}

// Options say how rules are rendered. The zero Options render the defaults.
type Options struct {
	// Set are settings that differ from their defaults.
	Set map[string]string
	// Overrides are for some jobs. Of two for one job the first counts.
	Overrides []Override
}

// Alertmanager returns the inhibition rules, a part of Alertmanager's configuration.
func Alertmanager() []byte { return bytes.Clone(alertmanager) }

// Render returns the rule files. The error names the setting that can't be.
func Render(o Options) ([]File, error) {
	values := map[string]string{}
	for _, s := range Settings {
		values[s.Name] = s.Default
	}
	for name, value := range o.Set {
		if err := check(name, value); err != nil {
			return nil, err
		}
		values[name] = value
	}
	if err := checkPairs(values); err != nil {
		return nil, err
	}
	names, err := fs.Glob(templates, "templates/*.yaml")
	if err != nil {
		return nil, err
	}
	var files []File
	for _, name := range names {
		text, err := templates.ReadFile(name)
		if err != nil {
			return nil, err
		}
		rendered, err := renderFile(string(text), values, o.Overrides)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files = append(files, File{path.Base(name), []byte(rendered)})
	}
	return files, nil
}

var (
	groupName   = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	placeholder = regexp.MustCompile(`\$\{(\w+)\}`)
	// ruleStart and groupStart begin the blocks of a template.
	ruleStart  = regexp.MustCompile(`(?m)^(?: {6}#.*\n)*      - alert: `)
	groupStart = regexp.MustCompile(`(?m)^  - name: ([\w-]+)\n`)
)

// renderFile renders a template, and behind its groups those that overrides add.
func renderFile(text string, values map[string]string, overrides []Override) (string, error) {
	var out, added strings.Builder
	starts := append(groupStart.FindAllStringSubmatchIndex(text, -1), []int{len(text)})
	out.WriteString(text[:starts[0][0]])
	for i, start := range starts[:len(starts)-1] {
		group := text[start[0]:starts[i+1][0]]
		head, rules := blocks(group)
		out.WriteString(head)
		for _, rule := range rules {
			rendered, err := expand(rule, values, filter(rule, overrides, nil))
			if err != nil {
				return "", err
			}
			out.WriteString(rendered)
		}
		for j := range overrides {
			o := &overrides[j]
			its := maps.Clone(values)
			maps.Copy(its, o.Set)
			name := text[start[2]:start[3]]
			newHead := "\n" + strings.Replace(head, name, name+"-"+o.Name, 1)
			for _, rule := range rules {
				if !o.uses(rule) || !strings.Contains(resolve(rule), "${jobs}") {
					continue
				}
				rendered, err := expand(rule, its, filter(rule, overrides[:j], o))
				if err != nil {
					return "", err
				}
				added.WriteString(newHead)
				newHead = ""
				added.WriteString(strings.TrimRight(rendered, "\n") + "\n")
			}
		}
	}
	return strings.TrimRight(out.String(), "\n") + "\n" + added.String(), nil
}

// blocks cuts a group into what stands before its rules, and them.
func blocks(group string) (head string, rules []string) {
	starts := append(ruleStart.FindAllStringIndex(group, -1), []int{len(group)})
	for i, start := range starts[:len(starts)-1] {
		rules = append(rules, group[start[0]:starts[i+1][0]])
	}
	return group[:starts[0][0]], rules
}

// resolve replaces the phrases in a text.
func resolve(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(p string) string {
		if phrase, ok := phrases[p[2:len(p)-1]]; ok {
			return phrase
		}
		return p
	})
}

// placeholders returns the names of what is set in a text.
func placeholders(text string) []string {
	var names []string
	for _, p := range placeholder.FindAllStringSubmatch(resolve(text), -1) {
		names = append(names, p[1])
	}
	return names
}

// expand replaces what is set in a text. jobs is the filter of its jobs.
func expand(text string, values map[string]string, jobs string) (string, error) {
	var unknown error
	expanded := placeholder.ReplaceAllStringFunc(resolve(text), func(p string) string {
		switch name := p[2 : len(p)-1]; name {
		case "jobs":
			return jobs
		case "matchers":
			if values[name] == "" {
				return ""
			}
			return ", " + values[name]
		default:
			value, ok := values[name]
			if !ok {
				unknown = fmt.Errorf("%s is no setting", p)
			}
			return value
		}
	})
	return expanded, unknown
}
