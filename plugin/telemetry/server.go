package telemetry

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/net/netutil"
)

// Bounds on what those who ask may cost the agent.
const (
	readTimeout    = 5 * time.Second
	writeTimeout   = 10 * time.Second
	idleTimeout    = 2 * time.Minute // longer than the usual interval of scrapes
	maxHeaderBytes = 16 << 10
	maxConnections = 16
	maxScrapes     = 4 // at a time
)

// server is a listener that outputs share.
type server struct {
	key     string // the address as the outputs named it
	address string // and as it is
	http    *http.Server
	done    chan struct{} // closed when the listener is

	mu      sync.Mutex
	outputs map[string]prometheus.Gatherer // by name
}

var (
	serversMu sync.Mutex
	servers   = map[string]*server{} // by key
)

// CheckAddress returns the address to listen on for "host:port" or a port alone, which is
// one on loopback.
func CheckAddress(v string) (string, error) {
	const remedy = "give host:port, such as 127.0.0.1:2021, or a port, which is one on loopback"
	if !strings.Contains(v, ":") {
		v = ":" + v
	}
	host, port, err := net.SplitHostPort(v)
	if err != nil {
		return "", errors.New(remedy)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("%q is no port: %s", port, remedy)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// join adds an output to the server at an address, which it starts where there is none,
// and returns the name of the output there.
func join(address string, registry prometheus.Gatherer, log *slog.Logger) (*server, string, error) {
	serversMu.Lock()
	defer serversMu.Unlock()
	s, ok := servers[address]
	if !ok {
		var err error
		if s, err = listen(address, log); err != nil {
			return nil, "", err
		}
		servers[address] = s
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := ""
	for i := 0; name == "" || s.outputs[name] != nil; i++ {
		name = "flink_loki." + strconv.Itoa(i)
	}
	s.outputs[name] = registry
	return s, name, nil
}

// leave takes an output from its server, which ends with the last one.
func leave(s *server, name string) {
	serversMu.Lock()
	defer serversMu.Unlock()
	s.mu.Lock()
	delete(s.outputs, name)
	isLast := len(s.outputs) == 0
	s.mu.Unlock()
	if isLast {
		delete(servers, s.key)
		_ = s.http.Close() // of the listener and of all connections
		select {
		case <-s.done:
		case <-time.After(readTimeout):
		}
	}
}

// listen starts a server.
func listen(address string, log *slog.Logger) (*server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &server{key: address, address: listener.Addr().String(), done: make(chan struct{}), outputs: map[string]prometheus.Gatherer{}}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(prometheus.GathererFunc(s.gather), promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
		Timeout:             writeTimeout / 2,
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	s.http = &http.Server{
		Handler:        mux,
		ReadTimeout:    readTimeout,
		WriteTimeout:   writeTimeout,
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
		ErrorLog:       slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	go func() {
		defer close(s.done)
		defer func() {
			if p := recover(); p != nil {
				log.Error("metrics are no longer served: a bug in the plugin was caught; please report it", "panic", fmt.Sprint(p))
			}
		}()
		if err := s.http.Serve(netutil.LimitListener(listener, maxConnections)); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics are no longer served", "address", s.address, "err", err)
		}
	}()
	return s, nil
}

// gather returns the metrics of all outputs.
func (s *server) gather() ([]*dto.MetricFamily, error) {
	s.mu.Lock()
	var all prometheus.Gatherers
	for _, name := range slices.Sorted(maps.Keys(s.outputs)) {
		all = append(all, s.outputs[name])
	}
	s.mu.Unlock()
	return all.Gather()
}
