package telemetry

import (
	"net/http"
	"strconv"
	"time"
)

// Transport counts and times the requests that go through next.
func (o *Output) Transport(next http.RoundTripper) http.RoundTripper {
	return &transport{next, o}
}

type transport struct {
	next   http.RoundTripper
	output *Output
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	start := time.Now()
	resp, err := t.next.RoundTrip(req)
	status := "error"
	if err == nil {
		status = strconv.Itoa(resp.StatusCode)
	}
	t.output.Count(Pushes, 1, status)
	t.output.Observe(PushDuration, time.Since(start))
	return resp, err
}

// CloseIdleConnections is what http.Client looks for.
func (t *transport) CloseIdleConnections() {
	if next, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}
