package loki

import "strings"

// MaxTenant is the length of the longest name of a tenant that Loki takes, in bytes.
const MaxTenant = 150

// IsTenant reports whether Loki takes a tenant's name for pushes, or it is empty (dskit
// tenant.ValidTenantID).
func IsTenant(name string) bool {
	isOther := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("!-_.*'()", r)
	}
	return len(name) <= MaxTenant && name != "." && name != ".." && !strings.ContainsFunc(name, isOther)
}
