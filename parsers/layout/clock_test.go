package layout

import (
	"testing"
	"time"
	_ "time/tzdata"
)

var berlin = mustLoad("Europe/Berlin")

func mustLoad(name string) *time.Location {
	loc, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return loc
}

func TestClock_stamps(t *testing.T) {
	for stamp, want := range map[string]string{
		"2026-11-29 13:36:05,010":            "2026-11-29T12:36:05.01Z",
		"2026-07-29 13:36:05.010":            "2026-07-29T11:36:05.01Z",
		"2026-11-29 13:36:05":                "2026-11-29T12:36:05Z",
		"2026-11-29T13:36:05.010Z":           "2026-11-29T13:36:05.01Z",
		"2026-11-29T13:36:05.010+0300":       "2026-11-29T10:36:05.01Z",
		"2026-11-29T13:36:05.010-03:30":      "2026-11-29T17:06:05.01Z",
		"2026-11-29T13:36:05.010+03":         "2026-11-29T10:36:05.01Z",
		"2026-11-29 13:36:05,010 UTC":        "2026-11-29T13:36:05.01Z",
		"2026-11-29 13:36:05,010 GMT":        "2026-11-29T13:36:05.01Z",
		"2026/11/29-13:36:05.010123":         "2026-11-29T12:36:05.010123Z",
		"26/11/29 13:36:05":                  "2026-11-29T12:36:05Z",
		"29 Nov 2026 13:36:05,010":           "2026-11-29T12:36:05.01Z",
		"20261129T133605,010":                "2026-11-29T12:36:05.01Z",
		"2026.11.29 13:36:05":                "2026-11-29T12:36:05Z",
		"1795958442924":                      "2026-11-29T13:20:42.924Z",
		"2026-11-29T13:36:05.1234567891234Z": "2026-11-29T13:36:05.123456789Z",
		"2026-13-29 13:36:05":                "none",
		"2026-11-29 25:36:05":                "none",
		"29 Xyz 2026 13:36:05,010":           "none",
		"13:36:05,010":                       "none",
		"":                                   "none",
		"2026-02-31 13:36:05":                "none",
		"2026-04-31 13:36:05":                "none",
		"2028-02-29 13:36:05":                "2028-02-29T12:36:05Z",
		"2026-11-29 13:36:05,010 and so on":  "2026-11-29T12:36:05.01Z",
		"2016-12-31 23:59:60,500":            "2016-12-31T23:00:00.5Z", // a leap second
	} {
		got := "none"
		if at, ok := NewClock(berlin, false).Instant([]byte(stamp)); ok {
			got = at.UTC().Format(time.RFC3339Nano)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", stamp, got, want)
		}
	}
}

// TestClock_summerTime reads the local times that a zone never had, and had twice.
func TestClock_summerTime(t *testing.T) {
	read := func(c *Clock, stamp string) string {
		at, _ := c.Instant([]byte(stamp))
		return at.UTC().Format("15:04:05")
	}
	for _, c := range []struct {
		name        string
		loc         *time.Location
		stamps, utc []string
	}{
		{"gap", berlin, []string{"2026-03-29 01:59:59", "2026-03-29 02:30:00", "2026-03-29 03:00:00"}, []string{"00:59:59", "01:30:00", "01:00:00"}},
		{"fold", berlin, []string{"2026-10-25 01:59:59", "2026-10-25 02:00:00", "2026-10-25 02:59:59", "2026-10-25 02:00:00", "2026-10-25 02:30:00", "2026-10-25 02:59:59", "2026-10-25 03:00:00"},
			[]string{"23:59:59", "00:00:00", "00:59:59", "01:00:00", "01:30:00", "01:59:59", "02:00:00"}},
		{"fold, read from its middle", berlin, []string{"2026-10-25 02:10:00", "2026-10-25 02:20:00"}, []string{"00:10:00", "00:20:00"}},
		{"fold, lines a little out of order", berlin, []string{"2026-10-25 02:10:00", "2026-10-25 02:09:58"}, []string{"00:10:00", "00:09:58"}},
		{"fold in the west", mustLoad("America/New_York"), []string{"2026-11-01 01:30:00", "2026-11-01 01:00:00"}, []string{"05:30:00", "06:00:00"}},
		{"gap of half an hour", mustLoad("Australia/Lord_Howe"), []string{"2026-10-04 02:15:00", "2026-10-04 02:30:00"}, []string{"15:45:00", "15:30:00"}},
		{"clock that jumps back", berlin, []string{"2026-11-29 13:00:00", "2026-11-29 11:00:00", "2025-01-01 00:00:00"}, []string{"12:00:00", "10:00:00", "23:00:00"}},
	} {
		clock := NewClock(c.loc, false)
		for i, stamp := range c.stamps {
			if got := read(clock, stamp); got != c.utc[i] {
				t.Errorf("%s: %s is %s, want %s", c.name, stamp, got, c.utc[i])
			}
		}
	}
}

// TestClock_learn learns a zone from lines that tell an instant besides.
func TestClock_learn(t *testing.T) {
	at := func(text string) time.Time {
		v, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct {
		name, stamp, truth string
		offset             time.Duration
		contradicts        bool
	}{
		{"the configured zone", "2026-11-29 13:00:00,050", "2026-11-29T12:00:00Z", time.Hour, false},
		{"UTC", "2026-11-29 13:00:00,050", "2026-11-29T13:00:00Z", 0, true},
		{"rounded up", "2026-11-29 13:00:00", "2026-11-29T13:00:00.9Z", 0, true},
		{"minutes late", "2026-11-29 13:05:00", "2026-11-29T13:00:00Z", 0, true},
		{"west", "2026-11-29 08:00:00,050", "2026-11-29T13:00:00Z", -5 * time.Hour, true},
		{"west, half an hour", "2026-11-29 09:30:00,050", "2026-11-29T13:00:00Z", -210 * time.Minute, true},
		{"east, three quarters", "2026-11-29 18:45:00,050", "2026-11-29T13:00:00Z", 345 * time.Minute, true},
		{"too late to say", "2026-11-29 13:10:00", "2026-11-29T13:00:00Z", 0, false},
		{"another day", "2026-11-27 13:00:00", "2026-11-29T13:00:00Z", 0, false},
		{"a stamp with a zone", "2026-11-29T13:00:00Z", "2026-11-29T12:00:00Z", 0, false},
	} {
		for _, learn := range []bool{true, false} {
			clock := NewClock(berlin, learn)
			offset, contradicts := clock.Learn([]byte(c.stamp), at(c.truth))
			if offset != c.offset || contradicts != c.contradicts {
				t.Errorf("%s: got %v %v", c.name, offset, contradicts)
			}
			want := time.Hour
			if learn && clock.Learnt() {
				want = c.offset
			}
			got, _ := clock.Instant([]byte("2026-11-29 20:00:00"))
			if shown := at("2026-11-29T20:00:00Z").Sub(got); shown != want {
				t.Errorf("%s: the clock is %v ahead, want %v", c.name, shown, want)
			}
		}
	}
}
