//go:build !race

package enrich

const isRace = false
