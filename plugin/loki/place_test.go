package loki

import (
	"fmt"
	"testing"
	"time"

	"flink-loki/parsers"
)

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
