package ship

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// NewLogger returns a logger that writes lines as Fluent Bit does
// (src/flb_log.c: "[2026/11/29 13:36:05.000] [ info] [output:…] message").
func NewLogger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(&logHandler{w: w, level: level, mu: new(sync.Mutex)})
}

type logHandler struct {
	level slog.Level
	attrs []slog.Attr

	mu *sync.Mutex // one line at a time
	w  io.Writer
}

func (h *logHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s] [%5s] [flink_loki] %s", r.Time.Format("2006/01/02 15:04:05.000"),
		strings.ToLower(r.Level.String()), r.Message)
	write := func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%q", a.Key, attrText(a.Value))
		return true
	}
	for _, a := range h.attrs {
		write(a)
	}
	r.Attrs(write)
	b.WriteByte('\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.w, b.String())
	return err
}

func attrText(v slog.Value) string {
	if v.Kind() == slog.KindDuration {
		return v.Duration().Round(time.Millisecond).String()
	}
	return v.String()
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	c.attrs = append(c.attrs[:len(c.attrs):len(c.attrs)], attrs...)
	return &c
}

func (h *logHandler) WithGroup(string) slog.Handler { return h }
