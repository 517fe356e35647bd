package fakeloki

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// refusal is why an entry, a stream or a push is not stored, as a status and Loki's words.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

func refuse(status int, format string, args ...any) *refusal {
	return &refusal{status: status, text: fmt.Sprintf(format, args...)}
}

// checkLabels applies the rules for a stream's labels; they come sorted.
// Seen on 3.7.6: one reason per stream, whatever its entries; the first of these.
func (lim *Limits) checkLabels(ls Labels) *refusal {
	if len(ls) == 0 {
		return refuse(http.StatusBadRequest, "error at least one label pair is required per stream")
	}
	if over(len(ls), lim.MaxLabels) {
		return refuse(http.StatusBadRequest, "entry for stream '%s' has %d label names; limit %d", ls, len(ls), lim.MaxLabels)
	}
	last := ""
	for _, l := range ls {
		switch {
		case over(len(l.Name), lim.MaxLabelNameBytes):
			return refuse(http.StatusBadRequest, "stream '%s' has label name too long: '%s'", ls, l.Name)
		case over(len(l.Value), lim.MaxLabelValueBytes):
			return refuse(http.StatusBadRequest, "stream '%s' has label value too long: '%s'", ls, l.Value)
		case l.Name == last:
			return refuse(http.StatusBadRequest, "stream '%s' has duplicate label name: '%s'", ls, l.Name)
		}
		last = l.Name
	}
	return nil
}

// checkEntry applies the rules for an entry by itself; the first of these is the reason.
func (lim *Limits) checkEntry(ls Labels, e Entry, now time.Time) *refusal {
	oldest := now.Add(-lim.RejectOlderThan)
	bytes := 0
	for _, m := range e.Metadata {
		bytes += len(m.Name) + len(m.Value)
	}
	switch {
	case lim.RejectOlderThan > 0 && e.Time.Before(oldest):
		return refuse(http.StatusBadRequest, "entry for stream '%s' has timestamp too old: %s, oldest acceptable timestamp is: %s",
			ls, seconds(e.Time), seconds(oldest))
	case lim.CreationGracePeriod > 0 && e.Time.After(now.Add(lim.CreationGracePeriod)):
		return refuse(http.StatusBadRequest, "entry for stream '%s' has timestamp too new: %s", ls, seconds(e.Time))
	case over(len(e.Line), lim.MaxLineBytes):
		return refuse(http.StatusBadRequest, "max entry size '%d' bytes exceeded for stream '%s' while adding an entry with length '%d' bytes",
			lim.MaxLineBytes, ls, len(e.Line))
	case over(bytes, lim.MaxMetadataBytes):
		return refuse(http.StatusBadRequest, "stream '%s' has structured metadata too large: '%d' bytes, limit: '%d' bytes. Please see `limits_config.max_structured_metadata_size` or contact your Loki administrator to increase it",
			ls, bytes, lim.MaxMetadataBytes)
	case over(len(e.Metadata), lim.MaxMetadataEntries):
		return refuse(http.StatusBadRequest, "stream '%s' has too many structured metadata labels: '%d', limit: '%d'. Please see `limits_config.max_structured_metadata_entries_count` or contact your Loki administrator to increase it",
			ls, len(e.Metadata), lim.MaxMetadataEntries)
	}
	return nil
}

// seconds prints a time as Loki's reasons do, cut to the second: an entry that is one nanosecond too far
// behind has the same text as the oldest acceptable time.
func seconds(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// summary is the answer to a push of which the distributor refused something: the reason where there
// was one, else each different text with its number. Seen on 3.7.6: not capped, in no fixed order (here
// in that of the push).
func summary(refused []*refusal) *refusal {
	if len(refused) == 1 {
		return refused[0]
	}
	count := map[string]int{}
	var texts []string
	for _, r := range refused {
		if count[r.text]++; count[r.text] == 1 {
			texts = append(texts, r.text)
		}
	}
	for i, t := range texts {
		texts[i] = fmt.Sprintf("%d errors like: %s", count[t], t)
	}
	return refuse(http.StatusBadRequest, "%s", strings.Join(texts, "; "))
}

// refusedEntry is an entry that an ingester did not take.
type refusedEntry struct {
	at time.Time
	*refusal
}

// entriesRefused is an ingester's answer for a stream of total entries. It names the first few of those
// refused (10 by default). Its status is that of the last: seen on 3.7.6, where a stream had entries too
// far behind and, later in the push, entries over its rate limit.
func entriesRefused(tenant string, ls Labels, refused []refusedEntry, total, named int) *refusal {
	var b strings.Builder
	for i, r := range refused {
		if named > 0 && i == named {
			break
		}
		fmt.Fprintf(&b, "entry with timestamp %s ignored, reason: '%s',\n", r.at.UTC(), r.text)
	}
	fmt.Fprintf(&b, "user '%s', total ignored: %d out of %d for stream: %s", tenant, len(refused), total, ls)
	return &refusal{status: refused[len(refused)-1].status, text: b.String()}
}
