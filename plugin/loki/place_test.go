package loki

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"flink-loki/parsers"
)

func event(fields map[parsers.Field]string) *parsers.Event {
	e := &parsers.Event{}
	for f, v := range fields {
		e.SetValue(f, []byte(v))
	}
	return e
}

// requests returns what a batch is stored as, one text an entry.
func requests(t *testing.T, b *Batch) (all []string) {
	t.Helper()
	for _, stored := range b.Encode() {
		r, err := DecodeRequest(stored)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range r.Entries {
			all = append(all, fmt.Sprintf("%s %d %s %v", r.Labels, e.Time.UnixNano(), e.Line, e.Metadata))
		}
	}
	return all
}

// TestGuard: what a label has too many values of is in the line and the metadata, until
// the next hour.
func TestGuard(t *testing.T) {
	clock := time.Unix(0, 0)
	var log bytes.Buffer
	guard := &Guard{Limit: 2, Log: slog.New(slog.NewTextHandler(&log, nil)), Now: func() time.Time { return clock }}
	send := func(ids ...string) []string {
		b := &Batch{Guard: guard, Placement: Placement{
			Labels: model.LabelSet{"cluster": "c"}, LabelKeys: []parsers.Field{parsers.Component, parsers.Filename}, Metadata: true,
		}}
		for _, id := range ids {
			b.Add(event(map[parsers.Field]string{parsers.Component: "rocksdb", parsers.Filename: id}), time.Unix(1, 0))
		}
		return requests(t, b)
	}
	with := func(id string) string {
		return `{cluster="c", component="rocksdb", filename="` + id + `"} 1000000000 component=rocksdb filename=` + id + ` []`
	}
	without := func(id string) string {
		return `{cluster="c", component="rocksdb"} 1000000000 component=rocksdb filename=` + id + ` [{filename ` + id + `}]`
	}
	sorted := func(s ...string) []string { slices.Sort(s); return s }
	if got := sorted(send("a", "b", "a", "c", "d")...); !slices.Equal(got, sorted(with("a"), with("a"), with("b"), without("c"), without("d"))) {
		t.Errorf("got %q", got)
	}
	if got := send("b", "e"); !slices.Equal(sorted(got...), sorted(with("b"), without("e"))) {
		t.Errorf("got %q", got)
	}
	if n := strings.Count(log.String(), "filename"); n != 1 || guard.Over() != 3 {
		t.Errorf("%d warnings, %d over: %s", n, guard.Over(), log.String())
	}
	clock = clock.Add(time.Hour)
	if got := send("e"); !slices.Equal(got, []string{with("e")}) {
		t.Errorf("an hour later: %q", got)
	}
}

// TestBatch_fits: values that Loki would refuse are shortened, and stay apart.
func TestBatch_fits(t *testing.T) {
	sql := strings.Repeat("SELECT 数 ", 1000)
	b := &Batch{Placement: Placement{LabelKeys: []parsers.Field{parsers.TaskName}, Metadata: true}}
	for _, end := range []string{"a", "b"} {
		b.Add(event(map[parsers.Field]string{parsers.TaskName: sql + end, parsers.Message: strings.Repeat(`"`, 300<<10)}), time.Unix(1, 0))
	}
	var streams []string
	for _, stored := range b.Encode() {
		r, err := DecodeRequest(stored)
		if err != nil {
			t.Fatal(err)
		}
		e := r.Entries[0]
		if len(r.Labels) > 1100 || len(e.Metadata[0].Value) > maxMetadataValue || len(e.Line) > maxLine {
			t.Errorf("labels of %d bytes, metadata of %d, a line of %d", len(r.Labels), len(e.Metadata[0].Value), len(e.Line))
		}
		if !bytes.Contains(e.Line, []byte(sql)) || !bytes.HasSuffix(e.Line, []byte(cutMark)) {
			t.Error("the line lacks the name, or does not say that it is cut")
		}
		streams = append(streams, r.Labels)
	}
	if len(streams) != 2 || streams[0] == streams[1] {
		t.Errorf("%d streams", len(streams))
	}
}

// TestBatch_tenants: equal streams of several tenants are requests of their own, which
// remember whose they are.
func TestBatch_tenants(t *testing.T) {
	batch := &Batch{}
	for _, tenant := range []string{"b", "", "a", "b"} {
		e := &parsers.Event{}
		e.SetText(parsers.Reason, []byte("of-"+tenant))
		batch.Tenant = tenant
		batch.Add(e, time.Unix(1, 0))
	}
	var got []string
	for _, stored := range batch.Encode() {
		_, tenant, err := PushBody(stored)
		if err != nil {
			t.Fatal(err)
		}
		r, err := DecodeRequest(stored)
		if err != nil || r.Tenant != tenant {
			t.Errorf("tenant %q, then %q, %v", tenant, r.Tenant, err)
		}
		for _, e := range r.Entries {
			got = append(got, tenant+": "+string(e.Line))
		}
	}
	want := []string{": reason=of-", "a: reason=of-a", "b: reason=of-b", "b: reason=of-b"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
