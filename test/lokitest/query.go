package lokitest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Sample is one element of a metric query's result.
type Sample struct {
	Labels map[string]string
	Time   time.Time
	Value  float64
}

// Stream is the entries of a log query's result that share labels, in the order of their times.
type Stream struct {
	Labels  map[string]string
	Entries []Entry
}

// Entry is one line.
type Entry struct {
	Time time.Time
	Line string
	// Metadata is the entry's structured metadata; filled by Stored only.
	Metadata map[string]string
}

// Alert is an active alert of the ruler.
type Alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	State       string            `json:"state"` // "pending" or "firing"
	ActiveAt    time.Time         `json:"activeAt"`
	Value       string            `json:"value"` // a number as Prometheus prints it
}

// StatusError is an answer other than 2xx.
type StatusError struct {
	Path   string
	Status int
	Body   string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: %d %s: %s", e.Path, e.Status, http.StatusText(e.Status), strings.TrimSpace(e.Body))
}

// Query evaluates a metric query at a time.
func (s *Server) Query(ctx context.Context, logql string, at time.Time) ([]Sample, error) {
	var vector []struct {
		Metric map[string]string  `json:"metric"`
		Value  [2]json.RawMessage `json:"value"` // seconds, "number"
	}
	args := url.Values{"query": {logql}, "time": {nanoseconds(at)}}
	if err := s.query(ctx, "/loki/api/v1/query", args, nil, "vector", &vector); err != nil {
		return nil, err
	}
	samples := make([]Sample, 0, len(vector))
	for _, v := range vector {
		var seconds float64
		var number string
		if err := json.Unmarshal(v.Value[0], &seconds); err != nil {
			return nil, fmt.Errorf("time of a sample: %w", err)
		}
		if err := json.Unmarshal(v.Value[1], &number); err != nil {
			return nil, fmt.Errorf("value of a sample: %w", err)
		}
		value, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return nil, fmt.Errorf("value of a sample: %w", err)
		}
		samples = append(samples, Sample{
			Labels: v.Metric,
			Time:   time.UnixMilli(int64(seconds*1000 + 0.5)).UTC(),
			Value:  value,
		})
	}
	return samples, nil
}

// QueryRange evaluates a log query over start <= time < end and returns up to limit entries, the oldest
// first. The labels of a result are those of the stream, those that the query parses from the line and,
// on Loki 3, structured metadata, as one set.
func (s *Server) QueryRange(ctx context.Context, logql string, start, end time.Time, limit int) ([]Stream, error) {
	return s.logs(ctx, logql, start, end, limit, nil)
}

// Stored returns what is stored in the streams of a selector, as QueryRange does but with structured
// metadata apart from the stream's labels.
func (s *Server) Stored(ctx context.Context, selector string, start, end time.Time, limit int) ([]Stream, error) {
	return s.logs(ctx, selector, start, end, limit, http.Header{"X-Loki-Response-Encoding-Flags": {"categorize-labels"}})
}

func (s *Server) logs(ctx context.Context, logql string, start, end time.Time, limit int, header http.Header) ([]Stream, error) {
	var result []struct {
		Stream map[string]string   `json:"stream"`
		Values [][]json.RawMessage `json:"values"` // "ns", "line", on Loki 3 an object
	}
	args := url.Values{
		"query":     {logql},
		"start":     {nanoseconds(start)},
		"end":       {nanoseconds(end)},
		"limit":     {strconv.Itoa(limit)},
		"direction": {"forward"},
	}
	if err := s.query(ctx, "/loki/api/v1/query_range", args, header, "streams", &result); err != nil {
		return nil, err
	}
	streams := make([]Stream, 0, len(result))
	for _, r := range result {
		stream := Stream{Labels: r.Stream}
		for _, v := range r.Values {
			e, err := decodeEntry(v)
			if err != nil {
				return nil, fmt.Errorf("entry of %v: %w", r.Stream, err)
			}
			stream.Entries = append(stream.Entries, e)
		}
		streams = append(streams, stream)
	}
	return streams, nil
}

func decodeEntry(v []json.RawMessage) (Entry, error) {
	var e Entry
	if len(v) < 2 {
		return e, fmt.Errorf("%d elements", len(v))
	}
	var ns string
	if err := json.Unmarshal(v[0], &ns); err != nil {
		return e, err
	}
	n, err := strconv.ParseInt(ns, 10, 64)
	if err != nil {
		return e, err
	}
	e.Time = time.Unix(0, n).UTC()
	if err := json.Unmarshal(v[1], &e.Line); err != nil {
		return e, err
	}
	if len(v) > 2 {
		var categories struct {
			Metadata map[string]string `json:"structuredMetadata"`
		}
		if err := json.Unmarshal(v[2], &categories); err != nil {
			return e, err
		}
		e.Metadata = categories.Metadata
	}
	return e, nil
}

// Alerts returns the active alerts of the ruler.
func (s *Server) Alerts(ctx context.Context) ([]Alert, error) {
	var answer struct {
		Data struct {
			Alerts []Alert `json:"alerts"`
		} `json:"data"`
	}
	err := s.getJSON(ctx, "/prometheus/api/v1/alerts", nil, &answer)
	return answer.Data.Alerts, err
}

// query asks for a result of the type want and decodes it.
func (s *Server) query(ctx context.Context, path string, args url.Values, header http.Header, want string, result any) error {
	var answer struct {
		Data struct {
			ResultType string          `json:"resultType"`
			Result     json.RawMessage `json:"result"`
		} `json:"data"`
	}
	if err := s.getJSON(ctx, path+"?"+args.Encode(), header, &answer); err != nil {
		return err
	}
	if answer.Data.ResultType != want {
		return fmt.Errorf("%s gives %s, not %s", args.Get("query"), answer.Data.ResultType, want)
	}
	return json.Unmarshal(answer.Data.Result, result)
}

func (s *Server) getJSON(ctx context.Context, pathQuery string, header http.Header, v any) error {
	body, err := s.get(ctx, pathQuery, header)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, v)
}

func (s *Server) get(ctx context.Context, pathQuery string, header http.Header) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+pathQuery, nil)
	if err != nil {
		return nil, err
	}
	if header != nil {
		r.Header = header.Clone()
	}
	if s.tenant != "" {
		r.Header.Set("X-Scope-OrgID", s.tenant)
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := readAll(answer.Body)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode/100 != 2 {
		path, _, _ := strings.Cut(pathQuery, "?")
		return nil, &StatusError{Path: path, Status: answer.StatusCode, Body: string(body)}
	}
	return body, nil
}

func nanoseconds(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
