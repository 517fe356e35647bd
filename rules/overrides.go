package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Override gives some jobs settings of their own.
type Override struct {
	// Name names it, and its groups of rules.
	Name string `yaml:"name"`
	// JobName is a regular expression for the whole name of a job, JobID an id: one of them.
	JobName string `yaml:"job_name"`
	JobID   string `yaml:"job_id"`
	// Set are the settings.
	Set map[string]string `yaml:"set"`
}

// ReadOverrides reads a file of overrides: a YAML list of name, job_name or job_id, and set.
func ReadOverrides(r io.Reader) ([]Override, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var overrides []Override
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&overrides); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("overrides are a list of name, job_name or job_id, and set: %w", err)
	}
	names := map[string]bool{}
	for i, o := range overrides {
		switch {
		case !groupName.MatchString(o.Name) || names[o.Name]:
			return nil, fmt.Errorf("override %d: give it a name of its own, of letters, digits, - and _", i+1)
		case (o.JobName == "") == (o.JobID == ""):
			return nil, fmt.Errorf("override %s: give either job_name or job_id", o.Name)
		case len(o.Set) == 0:
			return nil, fmt.Errorf("override %s: it sets nothing", o.Name)
		}
		if _, err := regexp.Compile(o.JobName); err != nil {
			return nil, fmt.Errorf("override %s: job_name: %w", o.Name, err)
		}
		names[o.Name] = true
		for name, value := range o.Set {
			if err := check(name, value); err != nil {
				return nil, fmt.Errorf("override %s: %w", o.Name, err)
			}
			if settingByName(name).Global {
				return nil, fmt.Errorf("override %s: setting %s is one for all jobs", o.Name, name)
			}
		}
	}
	return overrides, nil
}

// jobs returns the filter for the jobs of an override, or for all others.
func (o *Override) jobs(others bool) string {
	field, operator, value := "job_name", "=~", o.JobName
	if o.JobID != "" {
		field, operator, value = "job_id", "=", o.JobID
	}
	if others {
		operator = map[string]string{"=~": "!~", "=": "!="}[operator]
	}
	return " | " + field + operator + strconv.Quote(value)
}

// uses reports whether a rule's text uses any of the settings of an override.
func (o *Override) uses(text string) bool {
	for name := range o.Set {
		if slices.Contains(placeholders(text), name) {
			return true
		}
	}
	return false
}

// filter returns the filter of a rule that stands for all jobs but those that overrides
// have rules of their own for. Of two overrides for one job the first counts.
func filter(text string, before []Override, own *Override) string {
	var b strings.Builder
	if own != nil {
		b.WriteString(own.jobs(false))
	}
	for i := range before {
		if before[i].uses(text) {
			b.WriteString(before[i].jobs(true))
		}
	}
	return b.String()
}
