package ship

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"gopkg.in/yaml.v3"

	"flink-loki/plugin/enrich"
)

// intervals say what is expected of the checkpoints of some jobs. The first that a job
// matches counts.
type intervals []interval

type interval struct {
	// JobName is a regular expression for the whole name of a job, JobID an id: one of them.
	JobName string `yaml:"job_name"`
	JobID   string `yaml:"job_id"`
	// Interval is a duration, or off where no checkpoints are expected.
	Interval string `yaml:"interval"`
	Timeout  string `yaml:"timeout"`

	name   *regexp.Regexp
	expect enrich.Expectation
}

func setIntervals(c *Config, v string) error {
	if v == "" {
		return nil
	}
	info, err := os.Stat(v)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() { // a pipe would hang
		return fmt.Errorf("%s is no regular file", v)
	}
	text, err := os.ReadFile(v)
	if err != nil {
		return err
	}
	c.intervals, err = readIntervals(text)
	return err
}

// readIntervals reads a YAML list of job_name or job_id, interval and timeout.
func readIntervals(text []byte) (intervals, error) {
	var list intervals
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&list); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("it is a list of job_name or job_id, interval and timeout: %w", err)
	}
	for i := range list {
		if err := list[i].prepare(); err != nil {
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		}
	}
	return list, nil
}

func (i *interval) prepare() (err error) {
	if (i.JobName == "") == (i.JobID == "") {
		return errors.New("give either job_name or job_id")
	}
	if i.name, err = regexp.Compile("^(?:" + i.JobName + ")$"); err != nil {
		return fmt.Errorf("job_name: %w", err)
	}
	if i.Interval == "" && i.Timeout == "" {
		return errors.New("it says nothing: give interval, timeout or both")
	}
	read := func(name, text string) (d time.Duration, err error) {
		if text == "" {
			return 0, nil
		}
		if d, err = time.ParseDuration(text); err != nil || d <= 0 {
			return 0, fmt.Errorf("%s %q: give a duration like 90s or 1h30m", name, text)
		}
		return d, nil
	}
	if i.Interval == "off" || i.Interval == "false" { // as YAML spells it, too
		i.expect.Off = true
	} else if i.expect.Interval, err = read("interval", i.Interval); err != nil {
		return fmt.Errorf("%w, or off", err)
	}
	if i.expect.Timeout, err = read("timeout", i.Timeout); err == nil && max(3*i.expect.Interval, i.expect.Interval+i.expect.Timeout) > enrich.MaxOverdue {
		err = fmt.Errorf("what is overdue for more than %v is not told: give an interval of 8h or less, or off", enrich.MaxOverdue)
	}
	return err
}

// expect returns what is said of a job. One whose name is not known may be one of which no
// checkpoints are expected.
func (l intervals) expect(jobID, jobName string) enrich.Expectation {
	for i := range l {
		isIts := l[i].JobID == jobID && jobID != ""
		if l[i].JobID == "" {
			isIts = l[i].name.MatchString(jobName) || jobName == "" && l[i].expect.Off
		}
		if isIts {
			return l[i].expect
		}
	}
	return enrich.Expectation{}
}
