package ship

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"flink-loki/parsers"
	"flink-loki/plugin/enrich"
	"flink-loki/plugin/loki"
	"flink-loki/plugin/record"
	"flink-loki/plugin/telemetry"
)

// Result is what Fluent Bit is told about a chunk.
type Result uint8

const (
	// Retry keeps the chunk: Fluent Bit brings it again.
	Retry Result = iota
	// OK lets the chunk go: every event of it is in Loki.
	OK
)

// Output is one output of the agent. It is safe for concurrent use.
type Output struct {
	cfg      *Config
	log      *slog.Logger
	client   *loki.Client
	delivery *loki.Delivery
	dead     *deadLetters
	kept     *kept
	metrics  *telemetry.Output
	renderer uint64 // tells apart outputs that render a chunk in different ways
	id       string // the same as text

	now       func() time.Time
	startedAt time.Time
	totals    totals

	ctx    context.Context // ends when the output is closed
	cancel context.CancelFunc

	mu      sync.Mutex // guards the rest; held while a chunk is read
	counter enrich.Counter
	labels  loki.Guard
	files   files
	ticks   ticks
	look    look
	// Lines that are not known though their class is, by logger.
	unrecognised map[string]int
	identified   func(*parsers.Event) // for tests, nil for none
	closed       bool
	active       sync.WaitGroup // flushes
}

// New returns an output. An error says what in the configuration can't be used.
func New(cfg *Config, log *slog.Logger, version string) (*Output, error) {
	parser, err := parsers.New(parsers.Options{Location: cfg.Location, LearnZone: cfg.LearnZone, Keys: cfg.JSONKeys, Metrics: cfg.Metrics})
	if err != nil {
		return nil, err
	}
	metrics := newMetrics(version)
	options := cfg.clientOptions(version)
	options.Wrap = metrics.Transport
	client, err := loki.NewClient(cfg.URL, options)
	if err != nil {
		return nil, err
	}
	kept, err := openKept(cfg.StatePath, log)
	if err != nil {
		return nil, fmt.Errorf("option state_path, value %q: %w: give a directory that this agent alone may write", cfg.StatePath, err)
	}
	dead, err := openDeadLetters(cfg, log)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("option dead_letter_path, value %q: %w: name a file that the agent may write", cfg.DeadLetterPath, err), closeKept(cfg.StatePath))
	}
	o := &Output{now: time.Now, startedAt: time.Now(), cfg: cfg, log: log, client: client, dead: dead, kept: kept, metrics: metrics, unrecognised: map[string]int{}}
	o.delivery = &loki.Delivery{Client: client, Dead: dead.bury, Log: log, Backoff: loki.DefaultBackoff}
	o.look.stat = os.Stat
	o.labels = loki.Guard{Limit: cfg.MaxLabelValues, Log: log}
	if err := o.serveMetrics(); err != nil {
		return nil, errors.Join(err, dead.close(), closeKept(cfg.StatePath))
	}
	o.files = files{cfg: cfg, log: log, parser: parser}
	o.files.tenants = tenants{key: cfg.TenantKey, log: log, refused: func() { metrics.Count(telemetry.RefusedTenants, 1) }}
	o.renderer = xxhash.Sum64String(cfg.rendering)
	o.id = strconv.FormatUint(o.renderer, 16)
	o.ctx, o.cancel = context.WithCancel(context.Background())
	for _, text := range cfg.warnings() {
		log.Warn(text)
	}
	log.Info("started", "url", cfg.target(), "node", cfg.Node, "timezone", zoneName(cfg.Location),
		"timeout", cfg.Timeout, "state_path", cfg.StatePath, "metrics_listen", metrics.Address())
	return o, nil
}

// zoneName names a zone for a person: the agent's own zone by what it is now.
func zoneName(loc *time.Location) string {
	if loc == time.Local {
		name, offset := time.Now().Zone()
		return fmt.Sprintf("the agent's, now %s (%s)", name, time.Duration(offset)*time.Second)
	}
	return loc.String()
}

// Flush delivers the events of a chunk. read is called once, when the chunk's memory
// is no longer needed; Flush may go on after that, up to the configured timeout.
func (o *Output) Flush(tag string, chunk []byte, read func()) (result Result) {
	defer o.countFlush(time.Now(), &result)
	if !o.begin() {
		read()
		return Retry
	}
	defer o.active.Done()
	ctx, cancel := context.WithTimeout(o.ctx, o.cfg.Timeout)
	defer cancel()

	fingerprint, requests, err := o.read(tag, chunk)
	read()
	if err != nil {
		o.log.Error("a chunk is kept, because what can't be read of it can't be put away", "tag", tag, "err", err)
		return Retry
	}
	for i, request := range requests {
		if request == nil { // delivered before
			continue
		}
		switch failed := o.delivery.Deliver(ctx, request); {
		case failed == nil:
			o.kept.journal.Delivered(fingerprint, i)
		case loki.IsAnswer(failed), errors.Is(failed, loki.ErrOpen), errors.Is(failed, loki.ErrNotPutAway):
			// It may be about this stream or tenant only.
			if err == nil || errors.Is(err, loki.ErrOpen) {
				err = failed
			}
		default:
			o.logRefusal(tag, failed)
			return Retry
		}
	}
	if err != nil {
		o.logRefusal(tag, err)
		return Retry
	}
	if len(requests) > 0 {
		for _, gone := range o.kept.journal.Release(fingerprint) {
			o.kept.state.Release(gone.String())
		}
	}
	return OK
}

// logRefusal says why a chunk was not delivered.
func (o *Output) logRefusal(tag string, err error) {
	var status *loki.StatusError
	switch {
	case errors.Is(err, loki.ErrOpen):
		o.log.Debug("a chunk waits", "tag", tag, "err", err)
	case errors.As(err, &status) && status.Status/100 <= 4 && status.Status != 408 && status.Status != 429:
		o.log.Error("loki refuses a chunk, which is kept and tried again; see the answer for what to mend", "tag", tag, "err", err)
	default:
		o.log.Warn("a chunk could not be delivered, Fluent Bit tries it again", "tag", tag, "err", err)
	}
}

// begin counts a flush as active, unless the output is closed.
func (o *Output) begin() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.active.Add(1)
	}
	return !o.closed
}

// read renders a chunk: the requests that were rendered before where it is a retry. A
// chunk without events gives none. Nothing that it returns aliases the chunk. An error
// says that what can't be read can't be put away.
func (o *Output) read(tag string, chunk []byte) (enrich.Fingerprint, [][]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var fingerprint enrich.Fingerprint
	journal := o.kept.journal
	known := !journal.Empty()
	if known {
		fingerprint = enrich.NewFingerprint(o.renderer, tag, chunk)
		requests, err := journal.Get(fingerprint)
		if err != nil {
			o.log.Warn("a journal entry is lost, the chunk is rendered anew", "tag", tag, "err", err)
		}
		if requests != nil {
			return fingerprint, requests, nil
		}
	}
	batch := &loki.Batch{Placement: o.cfg.Placement, Guard: &o.labels}
	pass := o.kept.state.Begin(enrich.Teller{
		ID: o.id, SumStalls: true, Emit: func(e *parsers.Event, isMade bool) { o.add(batch, e, isMade) },
		Tag: tag, Now: o.now(), Expect: o.cfg.intervals.expect,
	})
	defer pass.Abandon()
	if tag == TickTag {
		o.tick(pass, batch, chunk)
	} else if unread := o.render(pass, tag, chunk); len(unread) > 0 {
		if err := o.dead.write(unread); err != nil {
			return fingerprint, nil, err
		}
	}
	var requests [][]byte
	mark := ""
	if batch.Len() > 0 {
		if !known {
			fingerprint = enrich.NewFingerprint(o.renderer, tag, chunk)
		}
		requests, mark = batch.Encode(), fingerprint.String()
		if err := journal.Put(fingerprint, requests); err != nil {
			o.log.Warn("the journal can't be written; the chunk is kept in memory only", "state_path", o.cfg.StatePath, "err", err)
		}
	}
	if err := pass.End(mark); err != nil {
		o.log.Warn("the state can't be written; what this chunk tells is kept in memory only", "state_path", o.cfg.StatePath, "err", err)
	}
	return fingerprint, requests, nil
}

// render turns a chunk into events, which the pass emits. It returns what it could not
// read.
func (o *Output) render(pass *enrich.Pass, tag string, chunk []byte) (unread []loki.DeadLetter) {
	sources := sources{files: &o.files, log: o.log, pass: pass, tag: tag, identify: o.identify, unrecognised: o.countUnrecognised}
	bury := func(reason string, text []byte) {
		unread = append(unread, loki.DeadLetter{At: time.Now().UTC(), Reason: reason, Tag: tag, Bytes: bytes.Clone(text)})
	}
	url := len(o.cfg.RecordFields)
	stats := record.Decode(chunk, o.cfg.Keys, func(r *record.Record) {
		origin := parsers.Origin{Offset: r.Offset, Time: r.Time, URL: r.Fields[url]}
		if text, reason := sources.read(r, origin); reason != "" {
			bury(reason, text)
		}
	})
	for _, reason := range sources.flush() {
		bury(reason, nil)
	}
	o.countRead(chunk, stats)
	if stats.Malformed > 0 {
		o.log.Error("pieces of a chunk are no log records and were skipped; the rest is delivered",
			"tag", tag, "pieces", stats.Malformed, "bytes", stats.SkippedBytes)
	}
	for _, piece := range stats.Pieces {
		bury("no log record of Fluent Bit", piece)
	}
	return unread
}

// identify gives an event what tells it from all others.
func (o *Output) identify(tag string, file []byte, e *parsers.Event) {
	o.addNode(e)
	if cluster := o.cfg.Placement.Labels["cluster"]; cluster != "" {
		e.SetText(parsers.Cluster, []byte(cluster))
	}
	e.SetText(parsers.Filename, file)
	if e.Origin.Offset >= 0 {
		e.SetInt(parsers.Offset, e.Origin.Offset)
	} else if o.cfg.Kinds[e.Kind.Name] {
		t, _ := e.Time(parsers.Time)
		name := "" // lines of no file are told apart by nothing else
		if len(file) > 0 {
			name = tag + "\x00" + string(file)
		}
		e.SetInt(parsers.Seq, o.counter.Next(name, t, e.AppendLogfmt(nil)))
	}
	if o.identified != nil {
		o.identified(e)
	}
}

func (o *Output) addNode(e *parsers.Event) {
	if o.cfg.NodeIsSet || !e.Has(parsers.Node) {
		e.SetText(parsers.Node, []byte(o.cfg.Node))
	}
}

// add puts an event into the batch, if its kind is sent.
func (o *Output) add(batch *loki.Batch, e *parsers.Event, isMade bool) {
	if !o.cfg.Kinds[e.Kind.Name] {
		return
	}
	if isMade {
		o.addNode(e)
	}
	t, ok := e.Time(parsers.Time)
	if !ok {
		t = time.Now() // neither the line nor the record has one
	}
	o.metrics.Count(telemetry.Events, 1, e.Kind.Name)
	o.totals.events.Add(1)
	batch.Tenant = o.files.tenants.of(e)
	batch.Add(e, t)
}

// maxUnrecognised bounds the loggers whose lines are counted.
const maxUnrecognised = 1024

// countUnrecognised counts a line that is not known though its class is: Flink may have
// reworded it. The first one of each logger is logged.
func (o *Output) countUnrecognised(file []byte, e *parsers.Event) {
	logger := string(e.Text(parsers.Logger))
	if _, ok := o.unrecognised[logger]; !ok && len(o.unrecognised) >= maxUnrecognised {
		logger = "others"
	}
	o.metrics.Count(telemetry.Unrecognised, 1, logger)
	o.totals.unrecognised.Add(1)
	if o.unrecognised[logger]++; o.unrecognised[logger] == 1 {
		o.log.Warn("a line of a known logger is not recognised; further ones are only counted",
			"logger", logger, "file", string(file), "line", string(e.Text(parsers.Message)))
	}
}

// Close ends the output: pushes are cancelled, which gives Retry, and awaited up to
// the given time.
func (o *Output) Close(wait time.Duration) {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.cancel()
	done := make(chan struct{})
	go func() {
		defer func() { _ = recover() }()
		o.active.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(wait):
		o.log.Warn("a flush did not end in time", "waited", wait)
	}
	o.client.Close()
	o.metrics.Close()
	if err := o.dead.close(); err != nil {
		o.log.Warn("the dead-letter file can't be closed", "err", err)
	}
	if err := closeKept(o.cfg.StatePath); err != nil {
		o.log.Warn("the state's file can't be closed", "state_path", o.cfg.StatePath, "err", err)
	}
	o.log.Info("stopped")
}
