package enrich

import (
	"fmt"
	"time"

	"flink-loki/parsers"
)

// Counts are what a heartbeat tells of an agent, since its output was started.
type Counts struct {
	Uptime                                       time.Duration
	Records, Events, Unrecognised, FailedFlushes int64
	DeadLetters, Files, PendingChunks            int64
}

var heartbeatKind = parsers.KindByName("agent_heartbeat")

// Heartbeat returns the event that tells that an agent lives.
func Heartbeat(at time.Time, cluster string, c Counts) *parsers.Event {
	e := heartbeatKind.Made("agent", "INFO", at)
	fill(e, parsers.Cluster, cluster)
	e.SetNumber(parsers.UptimeMs, float64(max(0, c.Uptime.Milliseconds())))
	e.SetInt(parsers.Records, c.Records)
	e.SetInt(parsers.Events, c.Events)
	e.SetInt(parsers.Unrecognised, c.Unrecognised)
	e.SetInt(parsers.FailedFlushes, c.FailedFlushes)
	e.SetInt(parsers.DeadLetters, c.DeadLetters)
	e.SetInt(parsers.Files, c.Files)
	e.SetInt(parsers.PendingChunks, c.PendingChunks)
	fill(e, parsers.Message, fmt.Sprintf("%d records read of %d files, %d events sent", c.Records, c.Files, c.Events))
	return e
}
