package ship

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	stdlog "log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	lokipush "flink-loki/plugin/loki"
	"flink-loki/test/fakeloki"
)

// quiet takes what servers of tests say of handshakes that are meant to fail.
var quiet = stdlog.New(io.Discard, "", 0)

// push flushes one event through an output with these options, to a Loki behind a server
// that they name, and returns what the output logged.
func push(t *testing.T, loki *fakeloki.Loki, options fakeConfig) (Result, string) {
	t.Helper()
	var log bytes.Buffer
	o := newOutput(t, loki, &log, options)
	return flush(o, "t", makeChunk(expired(1))), log.String()
}

// lastHeader returns the headers of the last push.
func lastHeader(t *testing.T, loki *fakeloki.Loki) http.Header {
	t.Helper()
	requests := loki.Requests()
	if len(requests) == 0 {
		t.Fatal("nothing was pushed")
	}
	return requests[len(requests)-1].Header
}

func TestSecurity_credentials(t *testing.T) {
	token := writeFile(t, filepath.Join(t.TempDir(), "token"), []byte("from-file\n"))
	for _, test := range []struct {
		options fakeConfig
		want    string
	}{
		{nil, ""},
		{fakeConfig{"http_user": "u", "http_passwd": "p:w"}, "Basic dTpwOnc="},
		{fakeConfig{"http_user": "u"}, "Basic dTo="},
		{fakeConfig{"bearer_token": "abc"}, "Bearer abc"},
		{fakeConfig{"bearer_token_file": token}, "Bearer from-file"},
	} {
		loki := fakeloki.New(fakeloki.Config{})
		if r, log := push(t, loki, test.options); r != OK {
			t.Errorf("%v: %v, %s", test.options, r, log)
		}
		if got := lastHeader(t, loki).Get("Authorization"); got != test.want {
			t.Errorf("%v: Authorization is %q, want %q", test.options, got, test.want)
		}
	}
}

func TestSecurity_credentialsInURL(t *testing.T) {
	loki := fakeloki.New(fakeloki.Config{})
	server := httptest.NewServer(loki)
	defer server.Close()
	if r, log := push(t, loki, fakeConfig{"url": strings.Replace(server.URL, "://", "://u:p%3Aw@", 1)}); r != OK {
		t.Errorf("%v, %s", r, log)
	}
	if got := lastHeader(t, loki).Get("Authorization"); got != "Basic dTpwOnc=" {
		t.Errorf("Authorization is %q", got)
	}
}

// TestSecurity_tokenFile: a token that changes is used with the next push; while there is
// none, the chunk is kept.
func TestSecurity_tokenFile(t *testing.T) {
	loki := fakeloki.New(fakeloki.Config{})
	token := writeFile(t, filepath.Join(t.TempDir(), "token"), []byte("first"))
	o := newOutput(t, loki, io.Discard, fakeConfig{"bearer_token_file": token})
	for i, text := range []string{"first", "second"} {
		writeFile(t, token, []byte(text))
		if r := flush(o, "t", makeChunk(expired(i))); r != OK {
			t.Fatal(r)
		}
		if got := lastHeader(t, loki).Get("Authorization"); got != "Bearer "+text {
			t.Errorf("Authorization is %q, want %s", got, text)
		}
	}
	if err := os.Remove(token); err != nil {
		t.Fatal(err)
	}
	if r := flush(o, "t", makeChunk(expired(9))); r != Retry {
		t.Errorf("without its token: %v", r)
	}
	expectStored(t, loki, 2)
}

func TestSecurity_headers(t *testing.T) {
	loki := fakeloki.New(fakeloki.Config{})
	if r, log := push(t, loki, fakeConfig{"headers": " X-Key = a=b , x-other=2,X-Key=c,", "tenant_id": "team"}); r != OK {
		t.Errorf("%v, %s", r, log)
	}
	h := lastHeader(t, loki)
	if got := h.Values("X-Key"); !slices.Equal(got, []string{"a=b", "c"}) || h.Get("X-Other") != "2" || h.Get("X-Scope-OrgID") != "team" {
		t.Errorf("got %v", h)
	}
}

// TestSecurity_tls: what is trusted gets the events, what is not gets none.
func TestSecurity_tls(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	crt, key := ours.issue("agent")
	foreignCrt, foreignKey := others.issue("agent")
	wantsClient := func(c *tls.Config) { c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, ours.pool }
	for _, test := range []struct {
		name    string
		host    string // of the certificate
		change  func(*tls.Config)
		options fakeConfig
		want    Result
	}{
		{"no authority", "127.0.0.1", nil, nil, Retry},
		{"authority", "127.0.0.1", nil, fakeConfig{"tls_ca_file": ours.file}, OK},
		{"another authority", "127.0.0.1", nil, fakeConfig{"tls_ca_file": others.file}, Retry},
		{"not verified", "127.0.0.1", nil, fakeConfig{"tls_verify": "off"}, OK},
		{"another name", "loki.internal", nil, fakeConfig{"tls_ca_file": ours.file}, Retry},
		{"server name", "loki.internal", nil, fakeConfig{"tls_ca_file": ours.file, "tls_server_name": "loki.internal"}, OK},
		{"no client certificate", "127.0.0.1", wantsClient, fakeConfig{"tls_ca_file": ours.file}, Retry},
		{"client certificate", "127.0.0.1", wantsClient, fakeConfig{"tls_ca_file": ours.file, "tls_crt_file": crt, "tls_key_file": key}, OK},
		{"a foreign client certificate", "127.0.0.1", wantsClient, fakeConfig{"tls_ca_file": ours.file, "tls_crt_file": foreignCrt, "tls_key_file": foreignKey}, Retry},
		{"old server", "127.0.0.1", func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS11, tls.VersionTLS11 },
			fakeConfig{"tls_ca_file": ours.file}, Retry},
		{"server of 1.2", "127.0.0.1", func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }, fakeConfig{"tls_ca_file": ours.file}, OK},
		{"server of 1.2 where 1.3 is wanted", "127.0.0.1", func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 },
			fakeConfig{"tls_ca_file": ours.file, "tls_min_version": "TLSv1.3"}, Retry},
		{"server of 1.3", "127.0.0.1", nil, fakeConfig{"tls_ca_file": ours.file, "tls_min_version": "tlsv1.3"}, OK},
	} {
		t.Run(test.name, func(t *testing.T) {
			loki := fakeloki.New(fakeloki.Config{})
			server := ours.serve(test.host, loki, test.change)
			options := fakeConfig{"url": server.URL}
			maps.Copy(options, test.options)
			r, log := push(t, loki, options)
			if r != test.want {
				t.Errorf("%v, want %v: %s", r, test.want, log)
			}
			want := 0
			if test.want == OK {
				want = 1
			}
			expectStored(t, loki, want)
			if warned := strings.Contains(log, "tls_verify is off"); warned != (test.options["tls_verify"] == "off") {
				t.Errorf("the log is %s", log)
			}
		})
	}
}

func TestSecurity_proxy(t *testing.T) {
	var seen []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Method+" "+r.RequestURI+" "+r.Header.Get("Proxy-Authorization"))
		r.RequestURI = ""
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}))
	defer proxy.Close()
	loki := fakeloki.New(fakeloki.Config{})
	server := httptest.NewServer(loki)
	defer server.Close()
	if r, log := push(t, loki, fakeConfig{"url": server.URL, "proxy_url": strings.Replace(proxy.URL, "://", "://u:pw@", 1)}); r != OK {
		t.Errorf("%v, %s", r, log)
	}
	if want := []string{"POST " + server.URL + "/loki/api/v1/push Basic dTpwdw=="}; !slices.Equal(seen, want) {
		t.Errorf("the proxy saw %q, want %q", seen, want)
	}
	expectStored(t, loki, 1)
}

// TestSecurity_redirect: a redirect is not followed, and the log says where it leads.
func TestSecurity_redirect(t *testing.T) {
	for _, status := range []int{301, 302, 307, 308} {
		loki := fakeloki.New(fakeloki.Config{})
		other := fakeloki.New(fakeloki.Config{})
		elsewhere := httptest.NewServer(other)
		loki.FailNext(1, status, http.Header{"Location": {elsewhere.URL + fakelokiPath + "?key=hidden-one"}}, "")
		r, log := push(t, loki, fakeConfig{"bearer_token": "abcdefgh"})
		elsewhere.Close()
		if r != Retry || len(other.Requests()) != 0 {
			t.Errorf("%d: %v, and %d requests elsewhere", status, r, len(other.Requests()))
		}
		if !strings.Contains(log, "[error]") || !strings.Contains(log, elsewhere.URL+fakelokiPath) || strings.Contains(log, "hidden-one") {
			t.Errorf("%d: the log is %s", status, log)
		}
	}
}

const fakelokiPath = "/loki/api/v1/push"

// TestSecurity_secretsAreNotShown: wherever a push goes wrong, and whatever a gateway says
// of it, the log has no secret.
func TestSecurity_secretsAreNotShown(t *testing.T) {
	const secret = "TOPSECRET-0123"
	dir := t.TempDir()
	token := writeFile(t, filepath.Join(dir, "token"), []byte(secret))
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintln(w, "refused: ", r.Header, r.URL)
		user, password, _ := r.BasicAuth()
		fmt.Fprintln(w, user, password)
	}))
	defer echo.Close()
	hangUp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = c.Close()
		}
	}))
	defer hangUp.Close()
	const down = "http://127.0.0.1:1" // where nobody listens, and no other test will
	with := func(u string) string { return strings.Replace(u, "://", "://u:"+secret+"@", 1) }
	base64 := "dTpUT1BTRUNSRVQtMDEyMw=="
	for _, u := range []string{echo.URL, hangUp.URL, down} {
		for _, options := range []fakeConfig{
			{"url": with(u)},
			{"url": strings.Replace(u, "://", "://"+secret+"@", 1)},
			{"url": u + fakelokiPath + "?key=" + secret},
			{"http_user": "u", "http_passwd": secret},
			{"bearer_token": secret},
			{"bearer_token_file": token},
			{"headers": "X-Api-Key=" + secret},
			{"proxy_url": with(u), "url": "http://loki.invalid"},
		} {
			if options["url"] == "" {
				options["url"] = u
			}
			options["plugin_log_level"] = "debug"
			r, log := push(t, fakeloki.New(fakeloki.Config{}), options)
			if r != Retry || !strings.Contains(log, "started") || !strings.Contains(log, "err=") {
				t.Errorf("%v: %v, the log is %s", options, r, log)
			}
			if strings.Contains(log, secret) || strings.Contains(log, base64) {
				t.Errorf("%v: the log is %s", options, log)
			}
		}
	}
}

// TestSecurity_refused: what contradicts itself or can't be used stops the start, with the
// names of the options and a remedy, and without a secret.
func TestSecurity_refused(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	crt, key := a.issue("agent")
	_, otherKey := a.issue("other")
	empty, missing := writeFile(t, filepath.Join(dir, "empty"), nil), filepath.Join(dir, "missing")
	const secret = "TOPSECRET"
	f := func(options fakeConfig, want ...string) {
		t.Helper()
		_, err := ReadConfig(options.get)
		if err == nil {
			t.Errorf("%v is accepted", options)
			return
		}
		for _, text := range want {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%v: %q does not say %q", options, err, text)
			}
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%v: %q shows the secret", options, err)
		}
	}
	const https = "https://loki"
	f(fakeConfig{"bearer_token": secret, "http_user": "u"}, "http_user and bearer_token", "keep one")
	f(fakeConfig{"bearer_token": secret, "bearer_token_file": crt}, "bearer_token and bearer_token_file", "keep one")
	f(fakeConfig{"bearer_token_file": crt, "http_user": "u", "http_passwd": secret}, "http_user and bearer_token_file", "keep one")
	f(fakeConfig{"url": "http://u:" + secret + "@loki", "http_user": "u"}, "url and http_user", "keep one")
	f(fakeConfig{"http_passwd": secret}, "option http_passwd", "http_user")
	f(fakeConfig{"http_user": "u:" + secret[:0]}, "option http_user", "http_passwd")
	f(fakeConfig{"bearer_token": secret + "\n" + secret}, "option bearer_token", "token alone")
	f(fakeConfig{"bearer_token_file": missing}, "option bearer_token_file", missing, "can read")
	f(fakeConfig{"bearer_token_file": dir}, "option bearer_token_file", dir, "can read")
	f(fakeConfig{"bearer_token_file": empty}, "option bearer_token_file", empty, "token alone")
	f(fakeConfig{"url": https, "tls_ca_file": missing}, "option tls_ca_file", missing, "can read")
	f(fakeConfig{"url": https, "tls_ca_file": key}, "option tls_ca_file", key, "PEM certificates")
	f(fakeConfig{"url": https, "tls_crt_file": crt}, "tls_crt_file and tls_key_file", "needs its key")
	f(fakeConfig{"url": https, "tls_key_file": key}, "tls_crt_file and tls_key_file", "needs its key")
	f(fakeConfig{"url": https, "tls_crt_file": crt, "tls_key_file": missing}, "option tls_key_file", missing, "can read")
	f(fakeConfig{"url": https, "tls_crt_file": crt, "tls_key_file": otherKey}, "tls_crt_file", "tls_key_file", "PEM key")
	f(fakeConfig{"url": https, "tls_crt_file": crt, "tls_key_file": empty}, "tls_crt_file", "tls_key_file", "PEM key")
	f(fakeConfig{"url": "http://loki", "tls_ca_file": a.file}, "option tls_ca_file", "https://")
	f(fakeConfig{"url": "http://loki", "tls_server_name": "x"}, "option tls_server_name", "https://")
	f(fakeConfig{"tls_min_version": "TLSv1.0"}, "option tls_min_version", "TLSv1.2 or TLSv1.3")
	f(fakeConfig{"tls_verify": "maybe"}, "option tls_verify", "on or off")
	f(fakeConfig{"proxy_url": "proxy:3128"}, "option proxy_url", "http://proxy:3128")
	f(fakeConfig{"proxy_url": "ftp://u:" + secret + "@proxy"}, "option proxy_url", "http://proxy:3128")
	f(fakeConfig{"proxy_url": "http://u:" + secret + "/x@proxy"}, "option proxy_url", "%2F")
	f(fakeConfig{"url": "http://u:" + secret + "/x@loki"}, "option url", "%2F")
	f(fakeConfig{"url": "http://u:x " + secret + "@loki:99999x"}, "option url")
	f(fakeConfig{"headers": secret}, "option headers", "part 1", "name=value")
	f(fakeConfig{"headers": "X-A=b,X B=" + secret}, "option headers", "part 2", "name=value")
	f(fakeConfig{"headers": "X-A=" + secret + "\x01"}, "option headers", "X-A")
	f(fakeConfig{"headers": "authorization=" + secret}, "option headers", "bearer_token")
	f(fakeConfig{"headers": "X-Scope-OrgID=" + secret}, "option headers", "tenant_id")
	f(fakeConfig{"headers": "Content-Type=" + secret}, "option headers", "Content-Type")
	f(fakeConfig{"tenant_id_key": "message"}, "option tenant_id_key", "namespace")
	f(fakeConfig{"tenant_id_key": "$"}, "option tenant_id_key", "$kubernetes")
}

// TestSecurity_plainHTTP: credentials on an open way are warned of.
func TestSecurity_plainHTTP(t *testing.T) {
	f := func(options fakeConfig, want bool) {
		t.Helper()
		c, err := ReadConfig(options.get)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(c.warnings(), "\n"), "without TLS"); got != want {
			t.Errorf("%v: warned is %v", options, got)
		}
	}
	f(fakeConfig{"url": "http://loki", "bearer_token": "x"}, true)
	f(fakeConfig{"url": "http://u:p@loki"}, true)
	f(fakeConfig{"url": "http://loki"}, false)
	f(fakeConfig{"url": "https://loki", "bearer_token": "x"}, false)
	f(fakeConfig{"url": "http://127.0.0.1:3100", "bearer_token": "x"}, false)
	f(fakeConfig{"url": "http://localhost:3100", "http_user": "x"}, false)
}

// TestSecurity_sendsTheSame: credentials that change do not make a chunk another one.
func TestSecurity_sendsTheSame(t *testing.T) {
	plain, err := ReadConfig(fakeConfig{}.get)
	if err != nil {
		t.Fatal(err)
	}
	for option, value := range map[string]string{"http_user": "u", "bearer_token": "t", "headers": "X-A=b", "proxy_url": "http://p:1", "tls_verify": "off"} {
		if c, err := ReadConfig(fakeConfig{option: value}.get); err != nil || c.rendering != plain.rendering {
			t.Errorf("%s renders in another way, or %v", option, err)
		}
	}
	f := func(url string) *Config {
		c, err := ReadConfig(fakeConfig{"url": url}.get)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	old, fresh, other := f("http://u:old@loki/path?a=b"), f("http://u:new@loki/path?a=b"), f("http://u:new@other/path?a=b")
	if old.rendering != fresh.rendering || fresh.rendering == other.rendering {
		t.Error("a password in the URL makes a difference, or its host does not")
	}
	if got := old.target(); got != "http://loki/path" {
		t.Errorf("the target is %q", got)
	}
}

// TestSecurity_deadLetters: nor has the dead-letter file one.
func TestSecurity_deadLetters(t *testing.T) {
	const secret = "TOPSECRET-0123"
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintln(w, "refused: ", r.Header)
	}))
	defer echo.Close()
	file := filepath.Join(t.TempDir(), "dead.json")
	r, log := push(t, fakeloki.New(fakeloki.Config{}), fakeConfig{"url": echo.URL, "bearer_token": secret, "headers": "X-Api-Key=" + secret, "dead_letter_path": file})
	letters, err := os.ReadFile(file)
	if r != OK || err != nil || !bytes.Contains(letters, []byte("Bearer ***")) {
		t.Fatalf("%v, %v, the letters are %s", r, err, letters)
	}
	if bytes.Contains(letters, []byte(secret)) || strings.Contains(log, secret) {
		t.Errorf("the letters are %s, and the log is %s", letters, log)
	}
}

// TestSecurity_sender: dead letters are sent again with the same credentials.
func TestSecurity_sender(t *testing.T) {
	loki := fakeloki.New(fakeloki.Config{MultiTenant: true})
	server := httptest.NewServer(loki)
	defer server.Close()
	s, err := NewSender(fakeConfig{"url": server.URL, "bearer_token": "abc", "tenant_id": "default"}.get, io.Discard, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	letter := &lokipush.DeadLetter{At: now, Labels: `{a="b"}`, Time: fmt.Sprint(now.UnixNano()), Line: "line", Tenant: "team"}
	if refused, err := s.Send(t.Context(), letter); err != nil || len(refused) > 0 {
		t.Fatalf("%v, %v", refused, err)
	}
	if h := lastHeader(t, loki); h.Get("Authorization") != "Bearer abc" || h.Get("X-Scope-OrgID") != "team" {
		t.Errorf("got %v", h)
	}
}
