package loki

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/snappy"
)

// PushPath is where Loki takes pushes (Loki's HTTP API, POST /loki/api/v1/push).
const PushPath = "/loki/api/v1/push"

// maxErrorBody bounds how much of an answer is read: it says which entries are refused.
const maxErrorBody = 64 << 10

// Client pushes to one Loki. It is safe for concurrent use.
type Client struct {
	http   *http.Client
	url    string
	tenant string
	// secrets of the configuration that the headers of a push do not have.
	secrets []string
}

// CheckURL reports whether a URL can be an address of Loki.
func CheckURL(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("no address of a Loki: give one like http://loki:3100")
	}
	return nil
}

// NewClient returns a Client that pushes to a URL that [CheckURL] accepts. A URL without a
// path gets [PushPath]. An error is one of the options: a file that can't be read, most
// often.
func NewClient(target *url.URL, o ClientOptions) (*Client, error) {
	u := *target
	if strings.Trim(u.Path, "/") == "" {
		u.Path = PushPath
	}
	client, err := o.newHTTP()
	if err != nil {
		return nil, err
	}
	return &Client{http: client, url: u.String(), tenant: o.Tenant, secrets: o.secrets(&u)}, nil
}

// Close lets go of idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// StatusError is an answer other than that Loki has stored the push.
type StatusError struct {
	// Status is the HTTP status code.
	Status int
	// Body is the start of what Loki said.
	Body string
	// RetryAfter is how long Loki, or a gateway before it, wants to be left alone; 0 where
	// it does not say.
	RetryAfter time.Duration
	// Date is the time on Loki's clock, the zero Time where it does not say.
	Date time.Time
}

func (e *StatusError) Error() string {
	const maxLogged = 1 << 10
	body := e.Body
	if len(body) > maxLogged {
		body = strings.ToValidUTF8(body[:maxLogged], "") + " …"
	}
	return fmt.Sprintf("loki answered %d %s: %s", e.Status, http.StatusText(e.Status), body)
}

// Push sends a logproto.PushRequest for a tenant, empty for the client's own. It returns
// nil only after Loki answered 2xx, a *[StatusError] for any other answer, and the error
// of the network or of ctx where there was none that could be read. It makes one attempt and takes no longer
// than ctx allows.
func (c *Client) Push(ctx context.Context, tenant string, request []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(snappy.Encode(nil, request)))
	if err != nil {
		return withoutURL(err)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	if tenant = cmp.Or(tenant, c.tenant); tenant != "" {
		req.Header.Set("X-Scope-OrgID", tenant)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return withoutURL(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if resp.StatusCode/100 == 2 && !isPage(body) { // a page is of something before Loki: a login, say
		return nil
	}
	if err != nil && mayRefuse(resp.StatusCode) { // what it refuses is not known
		return withoutURL(fmt.Errorf("the answer %s can't be read: %w", resp.Status, err))
	}
	answer := &StatusError{Status: resp.StatusCode, Body: c.hideSecrets(resp, strings.TrimSpace(string(body))) + redirection(resp)}
	answer.Date, _ = http.ParseTime(resp.Header.Get("Date"))
	answer.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), answer.Date)
	return answer
}

// isPage reports whether an answer is HTML, which Loki does not send.
func isPage(body []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(body, " \r\n\t\ufeff"), []byte("<"))
}

// retryAfter reads a Retry-After header: seconds, or a date.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(value); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}
