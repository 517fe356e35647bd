// Package replay brings logs of the past to the present: the times in their lines are
// moved, so that Loki takes them for new and alert rules see them.
package replay

import (
	"regexp"
	"strconv"
	"time"
)

// The times in logs of Flink and RocksDB, and Flink's epoch milliseconds.
var (
	flinkTime   = regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}`)
	rocksDBTime = regexp.MustCompile(`(?m)^\d{4}/\d\d/\d\d-\d\d:\d\d:\d\d\.\d{6}`)
	epochTime   = regexp.MustCompile(` @ \d{13}\b`)
)

const (
	flinkLayout   = "2006-01-02 15:04:05,000"
	rocksDBLayout = "2006/01/02-15:04:05.000000"
)

// Shift returns the log with all its times moved by the same time. They are those of
// the zone UTC.
func Shift(log []byte, by time.Duration) []byte {
	log = shiftLayout(log, flinkTime, flinkLayout, by)
	log = shiftLayout(log, rocksDBTime, rocksDBLayout, by)
	return epochTime.ReplaceAllFunc(log, func(text []byte) []byte {
		ms, err := strconv.ParseInt(string(text[len(" @ "):]), 10, 64)
		if err != nil {
			return text
		}
		return strconv.AppendInt([]byte(" @ "), ms+by.Milliseconds(), 10)
	})
}

func shiftLayout(log []byte, times *regexp.Regexp, layout string, by time.Duration) []byte {
	return times.ReplaceAllFunc(log, func(text []byte) []byte {
		t, err := time.Parse(layout, string(text))
		if err != nil {
			return text
		}
		return t.Add(by).AppendFormat(nil, layout)
	})
}

// Last returns the time of the log's last line that has one, the zero Time where none
// has.
func Last(log []byte) time.Time {
	all := flinkTime.FindAll(log, -1)
	if len(all) == 0 {
		return time.Time{}
	}
	t, err := time.Parse(flinkLayout, string(all[len(all)-1]))
	if err != nil {
		return time.Time{}
	}
	return t
}
