//go:build race

package enrich

// isRace says that the race detector runs: it takes its own memory, and its time.
const isRace = true
