package agent

import (
	"strings"

	"github.com/go-logfmt/logfmt"
)

// eventOf reads kind and message of a stored line.
func eventOf(line string) (name, message string, err error) {
	d := logfmt.NewDecoder(strings.NewReader(line))
	for d.ScanRecord() {
		for d.ScanKeyval() {
			switch string(d.Key()) {
			case "event":
				name = string(d.Value())
			case "message":
				message = string(d.Value())
			}
		}
	}
	return name, message, d.Err()
}
