package ruletest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/config"

	"flink-loki/plugin/loki"
)

// Loki is a Loki to test in.
type Loki struct {
	// URL is its address without a path.
	URL string
	// Tenant is sent with all requests, where it is not empty.
	Tenant string
	// HasTenants says that any tenant can be used: each test gets one of its own.
	HasTenants bool
	// Metadata sends structured metadata as well (Loki 3.x).
	Metadata bool

	version string // of one that was started
	stop    func()
}

// Close ends a Loki that [Start] has started.
func (l *Loki) Close() {
	if l.stop != nil {
		l.stop()
	}
}

// Version returns as much of the version as can be told: "2.2.1", "3.x", "unknown".
func (l *Loki) Version(ctx context.Context) (string, error) {
	if l.version != "" {
		return l.version, nil
	}
	var info struct {
		Version string `json:"version"`
	}
	status, err := l.get(ctx, l.Tenant, "/loki/api/v1/status/buildinfo", &info)
	switch {
	case status == http.StatusNotFound:
		return "2.2", nil // the page is younger
	case err != nil:
		return "", err
	case info.Version == "":
		return "unknown", nil
	}
	return info.Version, nil
}

// room is where one test has its lines.
type room struct {
	*Loki
	tenant string
	// label, where it is not empty, tells its streams apart from others.
	label, value string
}

// roomLabel is the label of a test's streams in a Loki without tenants.
const roomLabel = "rules_test"

// room returns a room of its own for the test of a number.
func (l *Loki) room(run string, number int) room {
	id := fmt.Sprintf("%s-%d", run, number)
	if l.HasTenants {
		return room{Loki: l, tenant: id}
	}
	return room{Loki: l, tenant: l.Tenant, label: roomLabel, value: id}
}

// labels are those that a test's streams have beside their own.
func (r room) labels() map[string]string {
	if r.label == "" {
		return nil
	}
	return map[string]string{r.label: r.value}
}

// push sends requests, and says of the first that Loki does not take why.
func (r room) push(ctx context.Context, requests [][]byte) error {
	u, err := url.Parse(r.URL)
	if err != nil {
		return err
	}
	client, err := loki.NewClient(u, loki.ClientOptions{Tenant: r.tenant, UserAgent: "flink-loki", HTTP: config.DefaultHTTPClientConfig})
	if err != nil {
		return err
	}
	defer client.Close()
	for _, request := range requests {
		body, _, err := loki.PushBody(request)
		if err == nil {
			err = client.Push(ctx, "", body)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// query evaluates a query at a time.
func (r room) query(ctx context.Context, expr string, at time.Time) ([]sample, error) {
	if r.label != "" {
		var err error
		if expr, err = within(expr, fmt.Sprintf("%s=%q", r.label, r.value)); err != nil {
			return nil, err
		}
	}
	var answer struct {
		Data struct {
			ResultType string          `json:"resultType"`
			Result     json.RawMessage `json:"result"`
		} `json:"data"`
	}
	args := url.Values{"query": {expr}, "time": {strconv.FormatInt(at.UnixNano(), 10)}}
	if _, err := r.get(ctx, r.tenant, "/loki/api/v1/query?"+args.Encode(), &answer); err != nil {
		return nil, err
	}
	switch answer.Data.ResultType {
	case "vector":
		return r.vector(answer.Data.Result)
	case "scalar":
		var v [2]json.RawMessage
		if err := json.Unmarshal(answer.Data.Result, &v); err != nil {
			return nil, err
		}
		value, err := number(v[1])
		return []sample{{map[string]string{}, value}}, err
	}
	return nil, fmt.Errorf("the query gives %s, and a rule needs a number", answer.Data.ResultType)
}

func (r room) vector(result json.RawMessage) ([]sample, error) {
	var elements []struct {
		Metric map[string]string  `json:"metric"`
		Value  [2]json.RawMessage `json:"value"` // seconds, "number"
	}
	if err := json.Unmarshal(result, &elements); err != nil {
		return nil, err
	}
	var samples []sample
	for _, e := range elements {
		value, err := number(e.Value[1])
		if err != nil {
			return nil, err
		}
		delete(e.Metric, r.label)
		for name, v := range e.Metric {
			if v == "" {
				delete(e.Metric, name)
			}
		}
		samples = append(samples, sample{e.Metric, value})
	}
	return samples, nil
}

func number(text json.RawMessage) (float64, error) {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return 0, err
	}
	return strconv.ParseFloat(s, 64)
}

// get asks for a JSON document. The status is 0 where there was no answer.
func (l *Loki) get(ctx context.Context, tenant, path string, answer any) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(l.URL, "/")+path, nil)
	if err != nil {
		return 0, err
	}
	if tenant != "" {
		request.Header.Set("X-Scope-OrgID", tenant)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<20))
	if err != nil {
		return response.StatusCode, err
	}
	if response.StatusCode/100 != 2 {
		return response.StatusCode, fmt.Errorf("loki answers %d: %s", response.StatusCode, strings.TrimSpace(string(body)))
	}
	return response.StatusCode, json.Unmarshal(body, answer)
}

// within adds a matcher to all stream selectors of a query.
func within(expr, matcher string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(expr); i++ {
		switch c := expr[i]; c {
		case '"', '`':
			end := i + 1
			for end < len(expr) && expr[end] != c {
				if c == '"' && expr[end] == '\\' {
					end++
				}
				end++
			}
			if end >= len(expr) {
				return "", errors.New("a quoted text does not end")
			}
			b.WriteString(expr[i : end+1])
			i = end
		case '#':
			end := strings.IndexByte(expr[i:], '\n')
			if end < 0 {
				return b.String(), nil
			}
			b.WriteByte('\n')
			i += end
		case '{':
			b.WriteString("{" + matcher)
			if !strings.HasPrefix(strings.TrimSpace(expr[i+1:]), "}") {
				b.WriteString(", ")
			}
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}
