package loki

import (
	"log/slog"
	"time"

	"flink-loki/parsers"
)

// Guard bounds the streams that labels make: each label may have so many values an hour.
// What is over goes without that label; the line has it. The zero Guard lets everything
// pass. It belongs to one output, and is not safe for concurrent use.
type Guard struct {
	// Limit is how many values a label may have within an hour of the agent's clock.
	Limit int
	Log   *slog.Logger
	// Now is the agent's clock, nil for the real one.
	Now func() time.Time

	hour   time.Time
	values map[parsers.Field]map[string]struct{}
	warned map[parsers.Field]bool
	over   int
}

// Over returns how many times a label was left out.
func (g *Guard) Over() int { return g.over }

// allows reports whether a label may have a value.
func (g *Guard) allows(f parsers.Field, value string) bool {
	if g == nil || g.Limit == 0 {
		return true
	}
	now := time.Now
	if g.Now != nil {
		now = g.Now
	}
	if hour := now().Truncate(time.Hour); g.values == nil || !hour.Equal(g.hour) {
		g.hour, g.values, g.warned = hour, map[parsers.Field]map[string]struct{}{}, map[parsers.Field]bool{}
	}
	known := g.values[f]
	if _, ok := known[value]; ok {
		return true
	}
	if len(known) >= g.Limit {
		if g.over++; !g.warned[f] {
			g.warned[f] = true
			g.Log.Warn("a label has too many values; further ones of this hour are left out of the labels and are in the line only",
				"label", parsers.Fields[f].Name, "max_label_values", g.Limit)
		}
		return false
	}
	if known == nil {
		known = map[string]struct{}{}
		g.values[f] = known
	}
	known[value] = struct{}{}
	return true
}
