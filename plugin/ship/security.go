package ship

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/grafana/loki-client-go/pkg/urlutil"
	"github.com/prometheus/common/config"
	"golang.org/x/net/http/httpguts"

	"flink-loki/plugin/loki"
)

// parseURL reads a URL. Its errors do not repeat the URL, which may hold a password.
func parseURL(v string) (*url.URL, error) {
	var u urlutil.URLValue
	err := u.Set(v)
	var told *url.Error
	switch {
	case err != nil && strings.Contains(v, "@"):
		return &url.URL{}, errors.New("no URL; in a user or password, letters like / and @ are written as %2F and %40")
	case errors.As(err, &told):
		return &url.URL{}, fmt.Errorf("%w: give a URL like http://loki:3100", told.Err)
	case err != nil:
		return &url.URL{}, err
	}
	return u.URL, nil
}

// hideUser blots out user and password of a URL, one that can't be read as well.
func hideUser(v string) string { return userInfo.ReplaceAllString(v, "://***@") }

var userInfo = regexp.MustCompile(`(?s)://.*@`)

// basicAuth returns the user and password, to be set.
func (c *Config) basicAuth() *config.BasicAuth {
	if c.HTTP.BasicAuth == nil {
		c.HTTP.BasicAuth = &config.BasicAuth{}
	}
	return c.HTTP.BasicAuth
}

func setUser(c *Config, v string) error {
	if strings.Contains(v, ":") {
		return errors.New("a user of basic authentication has no colon: the password goes into http_passwd")
	}
	if v != "" {
		c.basicAuth().Username = v
	}
	return nil
}

func setPassword(c *Config, v string) error {
	if v != "" {
		c.basicAuth().Password = config.Secret(v)
	}
	return nil
}

// tlsVersions are the versions of TLS that are still safe (RFC 8996), by the names that
// Fluent Bit has for them.
var tlsVersions = map[string]config.TLSVersion{
	"tlsv1.2": tls.VersionTLS12,
	"tlsv1.3": tls.VersionTLS13,
}

func setMinVersion(c *Config, v string) (err error) {
	version, ok := tlsVersions[strings.ToLower(v)]
	if !ok {
		return errors.New("give TLSv1.2 or TLSv1.3")
	}
	c.HTTP.TLSConfig.MinVersion = version
	return nil
}

func setVerify(c *Config, v string) error {
	verify, err := parseSwitch(v)
	c.HTTP.TLSConfig.InsecureSkipVerify = !verify
	return err
}

func setProxy(c *Config, v string) error {
	if v == "" {
		return nil
	}
	u, err := parseURL(v)
	if err != nil {
		return err
	}
	switch u.Scheme {
	case "http", "https", "socks5":
	default:
		return errors.New("no address of a proxy: give one like http://proxy:3128")
	}
	if u.Hostname() == "" {
		return errors.New("no address of a proxy: give one like http://proxy:3128")
	}
	c.HTTP.ProxyURL = config.URL{URL: u}
	return nil
}

// ownHeaders are headers that other options set.
var ownHeaders = map[string]string{
	"Authorization": "http_user or bearer_token",
	"X-Scope-Orgid": "tenant_id",
}

// setHeaders reads "name=value, …". Its errors name headers, never a value.
func setHeaders(c *Config, v string) error {
	headers := map[string]config.Header{}
	i := 0
	for item := range strings.SplitSeq(v, ",") {
		i++
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		name, value, ok := strings.Cut(item, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || !httpguts.ValidHeaderFieldName(name) {
			return fmt.Errorf("part %d is no header: give name=value, separated by commas; a value has no comma", i)
		}
		if !httpguts.ValidHeaderFieldValue(value) {
			return fmt.Errorf("the value of %s holds what no header can", name)
		}
		name = http.CanonicalHeaderKey(name)
		if option := ownHeaders[name]; option != "" {
			return fmt.Errorf("%s is set by option %s", name, option)
		}
		header := headers[name]
		header.Secrets = append(header.Secrets, config.Secret(value))
		headers[name] = header
	}
	if len(headers) == 0 {
		return nil
	}
	c.HTTP.HTTPHeaders = &config.Headers{Headers: headers}
	return c.HTTP.HTTPHeaders.Validate()
}

// checkReadable reports whether a file that an option names can be read.
func checkReadable(name string) error {
	if name == "" {
		return nil
	}
	_, err := readSecret(name)
	return err
}

// maxSecretFile bounds a file that an option names, in bytes: far more than all
// authorities of a host.
const maxSecretFile = 16 << 20

func readSecret(name string) ([]byte, error) {
	const remedy = "give a file that the agent's user can read"
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %s", err, remedy)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("it is no regular file: %s", remedy)
	case info.Size() > maxSecretFile:
		return nil, fmt.Errorf("it has %d bytes: %s, of %d at most", info.Size(), remedy, maxSecretFile)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, remedy)
	}
	return b, nil
}

func checkToken(name string) error {
	if name == "" {
		return nil
	}
	token, err := readSecret(name)
	if err != nil {
		return err
	}
	if token := strings.TrimSpace(string(token)); token == "" || !httpguts.ValidHeaderFieldValue(token) {
		return errors.New("it holds no token: give a file with the token alone, in one line")
	}
	return nil
}

func checkAuthorities(name string) error {
	if name == "" {
		return nil
	}
	certificates, err := readSecret(name)
	if err != nil {
		return err
	}
	if !x509.NewCertPool().AppendCertsFromPEM(certificates) {
		return errors.New("it holds no certificate: give a file of PEM certificates")
	}
	return nil
}

// checkSecurity reports options that contradict each other, and takes user and password
// out of the URL, which is printed. given are the names of the options that are set.
func (c *Config) checkSecurity(given map[string]bool) (errs []error) {
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	credentials := []string{"http_user", "bearer_token", "bearer_token_file"}
	var used []string
	if c.URL.User != nil {
		used = append(used, "url")
	}
	for _, option := range credentials {
		if given[option] {
			used = append(used, option)
		}
	}
	if len(used) > 1 {
		refuse("options %s: each of them has credentials; keep one", strings.Join(used, " and "))
	}
	if given["http_passwd"] && !given["http_user"] {
		refuse("option http_passwd: there is no user to it; set http_user as well")
	}
	if user := c.URL.User; user != nil {
		password, _ := user.Password()
		c.URL.User, c.HTTP.BasicAuth = nil, &config.BasicAuth{Username: user.Username(), Password: config.Secret(password)}
	}
	if !httpguts.ValidHeaderFieldValue(string(c.HTTP.BearerToken)) {
		refuse("option bearer_token: it holds what no HTTP header can; give the token alone")
	}
	return append(errs, c.checkTLS(given)...)
}

func (c *Config) checkTLS(given map[string]bool) (errs []error) {
	t := &c.HTTP.TLSConfig
	switch {
	case given["tls_crt_file"] != given["tls_key_file"]:
		errs = append(errs, errors.New("options tls_crt_file and tls_key_file: only one is set; a certificate needs its key"))
	case t.CertFile != "" && checkReadable(t.CertFile) == nil && checkReadable(t.KeyFile) == nil:
		if _, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile); err != nil {
			errs = append(errs, fmt.Errorf("options tls_crt_file %q and tls_key_file %q: %w; give a PEM certificate and its PEM key, without a password",
				t.CertFile, t.KeyFile, err))
		}
	}
	proxy := c.HTTP.ProxyURL.URL
	if c.URL.Scheme == "https" || proxy != nil && proxy.Scheme == "https" {
		return errs
	}
	for _, option := range []string{"tls_ca_file", "tls_crt_file", "tls_key_file", "tls_server_name"} {
		if given[option] {
			errs = append(errs, fmt.Errorf("option %s: Loki is spoken to without TLS; give an https:// url, or leave the option out", option))
		}
	}
	return errs
}

// clientOptions say how Loki is spoken to.
func (c *Config) clientOptions(version string) loki.ClientOptions {
	return loki.ClientOptions{Tenant: c.TenantID, UserAgent: "flink-loki/" + version, HTTP: c.HTTP}
}

// target names for a person where pushes go, without what may be a secret.
func (c *Config) target() string {
	u := url.URL{Scheme: c.URL.Scheme, Host: c.URL.Host, Path: c.URL.Path}
	return u.String()
}

// warnings says what of the configuration is allowed, but unsafe.
func (c *Config) warnings() (texts []string) {
	if c.HTTP.TLSConfig.InsecureSkipVerify {
		texts = append(texts, "tls_verify is off: whoever is on the way can read and change what is sent, credentials as well")
	}
	hasSecret := c.HTTP.BasicAuth != nil || c.HTTP.BearerToken != "" || c.HTTP.BearerTokenFile != ""
	if hasSecret && c.URL.Scheme == "http" && !isLoopback(c.URL.Hostname()) {
		texts = append(texts, "credentials are sent without TLS: give an https:// url")
	}
	return texts
}

func isLoopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }
