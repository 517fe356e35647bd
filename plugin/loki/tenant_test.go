package loki

import (
	"bytes"
	"testing"
	"time"

	"flink-loki/parsers"
)

func TestTenant(t *testing.T) {
	batch := &Batch{}
	at := time.Unix(1, 0)
	for _, tenant := range []string{"b", "", "a", "b"} {
		e := &parsers.Event{}
		e.SetText(parsers.Reason, []byte(tenant))
		batch.Tenant = tenant
		batch.Add(e, at)
	}
	var got []string
	for _, request := range batch.Encode() {
		tenant, push := CutTenant(request)
		if !bytes.Equal(WithTenant(tenant, push), request) {
			t.Errorf("the parts of %q make another request", request)
		}
		if again, rest := CutTenant(push); again != "" || !bytes.Equal(rest, push) {
			t.Errorf("%q still has a tenant", push)
		}
		got = append(got, tenant)
	}
	if len(got) != 3 || got[0] != "" || got[1] != "a" || got[2] != "b" {
		t.Errorf("requests of %q", got)
	}
}

// TestCutTenant_torn: what is no request is handed on as it is.
func TestCutTenant_torn(t *testing.T) {
	whole := WithTenant("team", []byte{0x0a, 0})
	for n := range len(whole) - 3 {
		if tenant, rest := CutTenant(whole[:n]); tenant != "" || !bytes.Equal(rest, whole[:n]) {
			t.Errorf("%d bytes give %q, %q", n, tenant, rest)
		}
	}
}
