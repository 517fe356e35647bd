package loki

import (
	"cmp"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/prometheus/common/config"
)

// ClientOptions say how a [Client] speaks to Loki.
type ClientOptions struct {
	// Tenant is sent as X-Scope-OrgID with each request that does not name its own; empty
	// sends none.
	Tenant    string
	UserAgent string
	// HTTP has credentials, TLS, proxy and further headers. Redirects are never followed.
	HTTP config.HTTPClientConfig
	// Wrap is put round the transport, nil for nothing.
	Wrap func(http.RoundTripper) http.RoundTripper
}

func (o *ClientOptions) newHTTP() (*http.Client, error) {
	cfg := o.HTTP
	cfg.FollowRedirects = false // a redirected POST loses its body, and may lead credentials elsewhere
	client, err := config.NewClientFromConfig(cfg, "loki", config.WithUserAgent(o.UserAgent))
	if err == nil && o.Wrap != nil {
		client.Transport = o.Wrap(client.Transport)
	}
	return client, err
}

// withoutURL takes the URL out of an error of net/http: it may hold what is secret.
func withoutURL(err error) error {
	var told *url.Error
	if errors.As(err, &told) {
		return told.Err
	}
	return err
}

// redirection says where an answer leads to, "" where it leads nowhere.
func redirection(resp *http.Response) string {
	location, err := resp.Location()
	if err != nil || resp.StatusCode/100 != 3 {
		return ""
	}
	to := url.URL{Scheme: location.Scheme, Host: location.Host, Path: location.Path}
	return " (it leads to " + to.String() + "; redirects are not followed: set option url to where Loki is)"
}

// plainHeaders are the headers of a push whose values are no secrets.
var plainHeaders = []string{"Content-Type", "User-Agent", "X-Scope-Orgid"}

// minSecret is the length in bytes of the shortest header value that is taken for a
// secret; shorter ones are words of any answer.
const minSecret = 8

// secrets returns what is secret in the URLs of proxy and Loki.
func (o *ClientOptions) secrets(target *url.URL) (secrets []string) {
	if proxy := o.HTTP.ProxyURL.URL; proxy != nil && proxy.User != nil {
		password, _ := proxy.User.Password()
		secrets = append(secrets, credentials("Basic "+base64.StdEncoding.EncodeToString([]byte(proxy.User.Username()+":"+password)))...)
	}
	for _, values := range target.Query() {
		for _, value := range values {
			if len(value) >= minSecret {
				secrets = append(secrets, value, url.QueryEscape(value))
			}
		}
	}
	return secrets
}

// hideSecrets blots out of an answer what is secret in its request: some gateways answer
// with the request that they refuse.
func (c *Client) hideSecrets(resp *http.Response, text string) string {
	secrets := slices.Clone(c.secrets)
	if resp.Request != nil { // the one that was sent, with all headers
		for name, values := range resp.Request.Header {
			for _, value := range values {
				switch {
				case name == "Authorization":
					secrets = append(secrets, credentials(value)...)
				case len(value) >= minSecret && !slices.Contains(plainHeaders, name):
					secrets = append(secrets, value)
				}
			}
		}
	}
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for _, secret := range secrets {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}

// credentials returns what is secret in an Authorization header: the token, and of a user
// and a password the latter, or a user who has none.
func credentials(value string) (secrets []string) {
	_, token, _ := strings.Cut(value, " ")
	if token == "" {
		return nil
	}
	secrets = append(secrets, token)
	if pair, err := base64.StdEncoding.DecodeString(token); err == nil {
		user, password, _ := strings.Cut(string(pair), ":")
		secrets = append(secrets, cmp.Or(password, user, token))
	}
	return secrets
}
