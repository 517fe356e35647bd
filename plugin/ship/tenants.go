package ship

import (
	"fmt"
	"log/slog"

	"flink-loki/parsers"
	"flink-loki/plugin/loki"
	"flink-loki/plugin/record"
)

// TenantKey says what tells the tenant of an event; the zero TenantKey is nothing.
type TenantKey struct {
	field   parsers.Field
	isField bool
	path    string // of the record key, empty for a field
}

func setTenantKey(c *Config, v string) error {
	if v == "" {
		return nil
	}
	if f, ok := parsers.FieldByName(v); ok {
		if !labelField(f) {
			return fmt.Errorf("%q differs on each line: give a field like namespace, or a record key", v)
		}
		c.TenantKey = TenantKey{field: f, isField: true}
		return nil
	}
	c.TenantKey.path = recordPath(v)
	if c.TenantKey.path == "" {
		return fmt.Errorf("%q names no record key: give one like $kubernetes['labels']['team']", v)
	}
	return nil
}

// ofRecord returns what a record tells of its tenant. It aliases the chunk.
func (k TenantKey) ofRecord(r *record.Record) []byte {
	if k.path == "" {
		return nil
	}
	return r.Fields[len(r.Fields)-1]
}

// tenants finds out whose each event is.
type tenants struct {
	key TenantKey
	log *slog.Logger
	// refused is told of each name that is none.
	refused func()
	told    bool

	line string // tenant of the line that is being read
}

// begin notes whose line is being read: what its record tells, and its event.
func (t *tenants) begin(ofRecord string, e *parsers.Event) {
	if t.key.isField {
		ofRecord = string(e.AppendValue(nil, t.key.field))
	}
	t.line = t.check(ofRecord)
}

// of returns the tenant of an event, "" for that of the option tenant_id. Events that the
// agent makes, and that do not have the field, are of the line that ended their story.
func (t *tenants) of(e *parsers.Event) string {
	if t.key.isField && e.Has(t.key.field) {
		return t.check(string(e.AppendValue(nil, t.key.field)))
	}
	return t.line
}

// check returns a tenant's name, "" for a text that is none. Records are written by
// others: no text of theirs may name several tenants, or make a push that always fails.
func (t *tenants) check(name string) string {
	if loki.IsTenant(name) {
		return name
	}
	if t.refused(); !t.told {
		t.told = true
		t.log.Warn("a tenant's name is none that Loki takes: its events go to tenant_id; further ones are only counted", "tenant", name[:min(len(name), loki.MaxTenant)])
	}
	return ""
}
