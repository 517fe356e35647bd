package fakeloki

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
)

// push answers POST /loki/api/v1/push.
func (l *Loki) push(w http.ResponseWriter, r *http.Request) {
	body, streams, refused := l.read(r)
	tenantName, denied := l.tenant(r)
	if denied != nil {
		refused = denied
	}
	n, f := l.record(r, body, streams)
	if f != nil && f.play != nil {
		f.play(l, w, r, n, func() {
			if refused == nil {
				_ = l.take(r, tenantName, body, streams)
			}
		})
		return
	}
	if refused == nil {
		refused = l.take(r, tenantName, body, streams)
	}
	if refused != nil {
		l.answered(n, refused.status)
		http.Error(w, refused.text, refused.status)
		return
	}
	l.answered(n, http.StatusNoContent)
	w.WriteHeader(http.StatusNoContent)
}

// take stores a push, or hands it on.
func (l *Loki) take(r *http.Request, tenant string, body []byte, streams []Stream) *refusal {
	if l.behind == nil {
		return l.store(tenant, streams)
	}
	if status, text := l.behind(r.Header, body); status/100 != 2 {
		return &refusal{status, text}
	}
	return nil
}

// read reads and decodes the body. Seen on 3.7.6: any type but JSON is taken for protobuf, none is 400;
// the encoding "snappy" may be named.
func (l *Loki) read(r *http.Request) (body []byte, streams []Stream, refused *refusal) {
	var in io.Reader = r.Body
	if limit := l.limits.MaxBodyBytes; limit > 0 {
		in = io.LimitReader(in, int64(limit)+1)
	}
	body, err := io.ReadAll(in)
	if err != nil {
		return body, nil, refuse(http.StatusBadRequest, "%s", err)
	}
	contentType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err != nil:
		return body, nil, refuse(http.StatusBadRequest, "%s", err)
	case contentType == "application/json":
		return body, nil, refuse(http.StatusNotImplemented, "fakeloki reads protobuf only")
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "snappy" {
		return body, nil, refuse(http.StatusBadRequest, "Content-Encoding %q not supported", encoding)
	}
	if over(len(body), l.limits.MaxBodyBytes) {
		size := max(int64(len(body)), r.ContentLength)
		return body, nil, refuse(http.StatusRequestEntityTooLarge, "request body too large: message size too large than max (%d vs %d)", size, l.limits.MaxBodyBytes)
	}
	message, err := decompress(body, l.limits.MaxDecodedBytes)
	if err == nil {
		streams, err = decodePush(message)
	}
	if err != nil {
		return body, nil, refuse(http.StatusBadRequest, "%s", err)
	}
	return body, streams, nil
}

// record notes a request and returns its index and the fault that it meets, if any.
func (l *Loki) record(r *http.Request, body []byte, streams []Stream) (int, *fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, Request{
		Method:  r.Method,
		Path:    r.URL.Path,
		Header:  r.Header.Clone(),
		Body:    body,
		Streams: streams,
	})
	return len(l.requests) - 1, l.nextFault()
}

func (l *Loki) answered(n, status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests[n].Status = status
}

// tenant reads X-Scope-OrgID. Statuses and words as seen on 3.7.6.
func (l *Loki) tenant(r *http.Request) (string, *refusal) {
	if !l.multiTenant {
		return "fake", nil
	}
	header := r.Header.Get("X-Scope-OrgID")
	if header == "" {
		return "", refuse(http.StatusUnauthorized, "no org id")
	}
	ids := strings.Split(header, "|")
	for _, id := range ids {
		if err := checkTenant(id); err != nil {
			return "", refuse(http.StatusBadRequest, "%s", err)
		}
		if id != ids[0] {
			return "", refuse(http.StatusBadRequest, "multiple org IDs present")
		}
	}
	return ids[0], nil
}

func checkTenant(id string) error {
	for _, c := range id {
		if !(c < 0x80 && (isLetter(byte(c)) || isDigit(byte(c)) || strings.ContainsRune("!-_.*'()", c))) {
			return fmt.Errorf("tenant ID '%s' contains unsupported character '%c'", id, c)
		}
	}
	switch {
	case len(id) > 150:
		return fmt.Errorf("tenant ID is too long: max 150 characters")
	case id == "." || id == "..":
		return fmt.Errorf("tenant ID is '.' or '..'")
	}
	return nil
}
