package loki

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A refusal is what Loki says of entries that it does not store. Its words are those of
// Loki 2.2 to 3.7 (pkg/validation, pkg/ingester/stream.go); they name only some of the
// entries, with the seconds of their times.
var (
	farBehind     = regexp.MustCompile(`entry too far behind|entry out of order`)
	oldestTime    = regexp.MustCompile(`oldest acceptable timestamp is: ([0-9T:.Z+-]+)`)
	namedEntry    = regexp.MustCompile(`entry with timestamp (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?) \+0000 UTC ignored`)
	tooNew        = regexp.MustCompile(`(?:(\d+) errors like: )?entry for stream '[^']*' has timestamp too new: ([0-9T:.Z+-]+)`)
	tooOld        = regexp.MustCompile(`has timestamp too old`)
	lineTooLong   = regexp.MustCompile(`[Mm]ax entry size '?(\d+)'? bytes exceeded`)
	metadataFault = regexp.MustCompile(`structured metadata`)
	noMetadata    = regexp.MustCompile(`structured metadata, but this feature is disallowed`)
	noSchema      = regexp.MustCompile(`no schema config found for time`) // with status 500
	labelFault    = regexp.MustCompile(`label names; limit|label name too long|label value too long|duplicate label name|couldn't parse labels|Maximum active stream limit`)
)

// An answer 400 that begins with these is not about entries: TLS is spoken at the other end, or
// the tenant is none. Streams, which Loki names, may have such words in their labels.
var onTheWay = regexp.MustCompile(`(?i)^(client sent an HTTP request to an HTTPS server|tenant ID|multiple org IDs|no org ID)`)

// An answer 422 that says one of these can be about entries.
var aboutEntries = regexp.MustCompile(`(?i)\b(entry|entries|streams?|labels?|timestamp|structured metadata)\b`)

// adjustedMark is put behind a line whose entry could not be stored under its own time.
const adjustedMark = " time_adjusted=true"

// mend changes a request so that Loki takes it, as a refusal says: it returns requests
// that stand in the place of the refused one, and what was done; none where the refusal
// names nothing that can be mended.
func mend(r *Request, refused *StatusError) (mended []*Request, what string) {
	text := refused.Body
	switch {
	case farBehind.MatchString(text) && r.isDelayed():
		// Loki before 2.4 wants strict order there, too: behind all that it can have by now.
		now := refused.Date
		if !now.IsZero() {
			now = now.Add(time.Second)
		}
		return r.adjust(r.isFarBehind(text), now), "entries out of order get the time when they were read"
	case farBehind.MatchString(text):
		return r.delay(text), "entries too far behind their stream get a stream of their own"
	case tooNew.MatchString(text):
		return r.adjust(r.isTooNew(text), refused.Date), "entries too far ahead of Loki's clock get the time when they were read"
	case tooOld.MatchString(text):
		return r.adjust(isBefore(oldest(text)), refused.Date), "entries older than Loki takes get the time when they were read"
	case noSchema.MatchString(text):
		if len(r.Entries) > 1 { // it does not say which
			return nil, ""
		}
		return r.adjust(func(*Entry) bool { return true }, refused.Date), "entries older than Loki's schema get the time when they were read"
	case lineTooLong.MatchString(text):
		return r.shorten(text), "lines longer than Loki takes are cut"
	case labelFault.MatchString(text):
		return r.plainLabels(), "labels that Loki does not take are left out; the line has them"
	case noMetadata.MatchString(text):
		return r.withoutMetadata(true), "structured metadata is left out, which this Loki does not take (limits_config.allow_structured_metadata); the line has it"
	case metadataFault.MatchString(text):
		return r.withoutMetadata(len(r.Entries) == 1), "structured metadata that Loki does not take is left out; the line has it"
	}
	return nil, ""
}

// oldest returns the oldest time that a refusal says is taken, in whole seconds.
func oldest(text string) time.Time {
	var newest time.Time
	for _, m := range oldestTime.FindAllStringSubmatch(text, -1) {
		if t, err := time.Parse(time.RFC3339Nano, m[1]); err == nil && t.After(newest) {
			newest = t
		}
	}
	return newest
}

// isBefore is of entries that are surely older than a time that is cut to seconds.
func isBefore(oldest time.Time) func(*Entry) bool {
	return func(e *Entry) bool { return e.Time.Before(oldest) }
}

// delay moves the entries that are too far behind to streams with the label delayed: one
// for each hour, so that they are never far behind each other.
func (r *Request) delay(text string) []*Request {
	late, others := r.take(r.isFarBehind(text))
	if len(late) == 0 {
		return nil
	}
	var mended []*Request
	if len(others) > 0 {
		mended = append(mended, r.part(others))
	}
	for len(late) > 0 {
		hour := late[0].Time.UTC().Truncate(time.Hour)
		n := 1
		for n < len(late) && late[n].Time.UTC().Truncate(time.Hour).Equal(hour) {
			n++
		}
		delayed := r.part(late[:n])
		delayed.Labels = addLabel(r.Labels, delayedLabel, hour.Format("2006-01-02T15"))
		mended, late = append(mended, delayed), late[n:]
	}
	return mended
}

const delayedLabel = "delayed"

func (r *Request) isDelayed() bool { return strings.Contains(r.Labels, delayedLabel+"=") }

// isFarBehind returns whether an entry is one of those that a refusal says are too far
// behind.
func (r *Request) isFarBehind(text string) func(*Entry) bool {
	limit := oldest(text)
	named := map[time.Time]bool{}
	var last time.Time
	for _, m := range namedEntry.FindAllStringSubmatch(text, -1) {
		if t, err := time.Parse("2006-01-02 15:04:05.999999999", m[1]); err == nil {
			named[t] = true
			if t.After(last) {
				last = t
			}
		}
	}
	return func(e *Entry) bool {
		// Loki before 2.4 tells no limit, but the first few entries.
		return e.Time.Before(limit) || named[e.Time] || limit.IsZero() && !e.Time.After(last)
	}
}

// addLabel adds a label whose value needs no quoting.
func addLabel(labels, name, value string) string {
	return strings.TrimSuffix(labels, "}") + `, ` + name + `="` + value + `"}`
}

// isTooNew returns whether an entry is one of those that a refusal says are too new.
func (r *Request) isTooNew(text string) func(*Entry) bool {
	first := time.Time{} // second of the first of them
	count := 0           // and how many there are of that second
	for _, m := range tooNew.FindAllStringSubmatch(text, -1) {
		t, err := time.Parse(time.RFC3339Nano, m[2])
		if err != nil {
			continue
		}
		n, _ := strconv.Atoi(m[1])
		if t = t.Truncate(time.Second); first.IsZero() || t.Before(first) {
			first, count = t, max(n, 1)
		}
	}
	inFirst := 0
	for i := range r.Entries {
		if r.Entries[i].Time.Truncate(time.Second).Equal(first) {
			inFirst++
		}
	}
	return func(e *Entry) bool {
		switch second := e.Time.Truncate(time.Second); {
		case second.Equal(first):
			inFirst-- // the last of that second are the too new ones
			return inFirst < count
		default:
			return second.After(first)
		}
	}
}

// adjust gives entries the time when the agent read them or, where that is no better,
// Loki's own. The line keeps its time and says so.
func (r *Request) adjust(is func(*Entry) bool, now time.Time) []*Request {
	wrong, others := r.take(is)
	if len(wrong) == 0 {
		return nil
	}
	for i := range wrong {
		e := &wrong[i]
		isAdjusted := strings.HasSuffix(string(e.Line), adjustedMark)
		switch {
		case !isAdjusted && !e.Read.IsZero() && !e.Read.Equal(e.Time):
			e.Time = e.Read
		case now.IsZero() || isAdjusted && e.Time.Equal(now):
			return nil
		default:
			e.Time = now
		}
		if !isAdjusted {
			e.Line = append(e.Line[:len(e.Line):len(e.Line)], adjustedMark...)
		}
	}
	adjusted := r.part(wrong).sorted()
	if len(others) == 0 {
		return []*Request{adjusted}
	}
	return []*Request{r.part(others), adjusted}
}

// cutMark ends a line that was cut.
const cutMark = " … truncated=true"

// shorten cuts the lines that are longer than a refusal says is taken.
func (r *Request) shorten(text string) []*Request {
	limit, _ := strconv.Atoi(lineTooLong.FindStringSubmatch(text)[1])
	long, _ := r.take(func(e *Entry) bool { return len(e.Line) > limit })
	if len(long) == 0 || limit < 2*len(cutMark) {
		return nil
	}
	entries := make([]Entry, len(r.Entries))
	for i, e := range r.Entries {
		if len(e.Line) > limit {
			e.Line = cutLine(e.Line, limit)
		}
		entries[i] = e
	}
	return []*Request{r.part(entries)}
}

// cutLine cuts a line of logfmt: what is left of a value that it cuts is closed.
func cutLine(line []byte, limit int) []byte {
	cut := []byte(strings.ToValidUTF8(string(line[:limit-len(cutMark)-2]), ""))
	for len(cut) > 0 && cut[len(cut)-1] == '\\' {
		cut = cut[:len(cut)-1]
	}
	if quotes := strings.Count(strings.ReplaceAll(string(cut), `\"`, ""), `"`); quotes%2 == 1 {
		cut = append(cut, '"')
	}
	return append(cut, cutMark...)
}

// plainLabels leaves only the labels that every stream has by default.
func (r *Request) plainLabels() []*Request {
	var kept []string
	for _, m := range labelPair.FindAllStringSubmatch(r.Labels, -1) {
		switch m[1] {
		case "component", "event", "level", "cluster":
			kept = append(kept, m[0])
		}
	}
	labels := "{" + strings.Join(kept, ", ") + "}"
	if len(kept) == 0 || labels == r.Labels {
		return nil
	}
	plain := r.part(r.Entries)
	plain.Labels = labels
	return []*Request{plain}
}

var labelPair = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="(?:[^"\\]|\\.)*"`)

// withoutMetadata leaves out the metadata where all entries with some are refused: others
// are stored already, and would be stored again.
func (r *Request) withoutMetadata(all bool) []*Request {
	hasMetadata := func(e Entry) bool { return len(e.Metadata) > 0 }
	if !all || !slices.ContainsFunc(r.Entries, hasMetadata) {
		return nil
	}
	entries := slices.Clone(r.Entries)
	for i := range entries {
		entries[i].Metadata = nil
	}
	return []*Request{r.part(entries)}
}
