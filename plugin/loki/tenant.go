package loki

import "google.golang.org/protobuf/encoding/protowire"

// A request of a tenant of its own carries its name in front, as a field that
// logproto.PushRequest does not have: so it is kept with the request wherever that is
// kept, and taken off before it is sent.
const tenantField protowire.Number = 1000

// WithTenant puts a tenant's name in front of a request; "" puts nothing.
func WithTenant(tenant string, request []byte) []byte {
	if tenant == "" {
		return request
	}
	return append(appendText(nil, tenantField, tenant), request...)
}

// CutTenant returns the tenant of a request, "" where it has none of its own, and the
// logproto.PushRequest behind it.
func CutTenant(request []byte) (tenant string, push []byte) {
	number, kind, n := protowire.ConsumeTag(request)
	if n < 0 || number != tenantField || kind != protowire.BytesType {
		return "", request
	}
	name, m := protowire.ConsumeString(request[n:])
	if m < 0 {
		return "", request
	}
	return name, request[n+m:]
}
