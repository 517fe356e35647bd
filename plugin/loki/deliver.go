package loki

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/grafana/loki-client-go/pkg/backoff"
)

// Delivery brings requests to Loki: it tries again, and mends what Loki refuses. It is
// safe for concurrent use.
type Delivery struct {
	Client *Client
	// Dead takes the entries that Loki refuses for ever. An error keeps the request.
	Dead func(reason string, r *Request) error
	Log  *slog.Logger
	// Backoff is how long a push that failed waits to be made again, and how often that is
	// done at most within one delivery; MaxRetries 0 is as often as the time allows.
	Backoff backoff.BackoffConfig

	circuits circuits
	settled  settled
	retries  atomic.Int64
	mendings atomic.Int64
}

// ErrOpen says that Loki is not reachable, and that another push is trying whether it is
// again.
var ErrOpen = errors.New("loki is not reachable, which another push is trying out")

// Retries returns how many pushes were made again within [Delivery.Deliver].
func (d *Delivery) Retries() int64 { return d.retries.Load() }

// Mended returns how many requests Loki refused and took in another form.
func (d *Delivery) Mended() int64 { return d.mendings.Load() }

// Deliver brings a stored request to Loki. nil means that each entry of it is in Loki, or
// was handed to Dead. After an error, which is Loki's, the network's or ctx's, some may
// be: delivering the same request again changes nothing of them.
func (d *Delivery) Deliver(ctx context.Context, stored []byte) (err error) {
	body, tenant, err := PushBody(stored)
	if err != nil {
		return err
	}
	probe, ok := d.circuits.enter(tenant)
	if !ok {
		return ErrOpen
	}
	reached, ended := false, false
	defer func() {
		if !ended { // a bug, which tells nothing of Loki
			d.circuits.release(tenant, probe)
			return
		}
		switch changed := d.circuits.leave(tenant, probe, reached); {
		case changed && reached:
			d.Log.Info("loki is reachable again", "tenant", tenant)
		case changed:
			d.Log.Warn("loki is not reachable; until it is, one push at a time tries", "tenant", tenant, "err", err)
		}
	}()
	err = d.deliver(ctx, stored, body, tenant, probe)
	var status *StatusError
	ended = true
	reached = err == nil || errors.Is(err, context.Canceled) || // the output is closed
		errors.Is(err, ErrNotPutAway) || errors.As(err, &status) && !status.isTransient()
	return err
}

// ErrNotPutAway is that of a disk: Loki has answered.
var ErrNotPutAway = errors.New("an entry that loki refuses can't be put away")

func (d *Delivery) deliver(ctx context.Context, stored, body []byte, tenant string, probe bool) error {
	if d.settled.has(stored) {
		return nil
	}
	err := d.send(ctx, body, tenant, probe)
	var status *StatusError
	if !errors.As(err, &status) || !status.isRefusal() {
		return err
	}
	r, decodeErr := DecodeRequest(stored)
	if decodeErr != nil {
		return decodeErr
	}
	err = d.mend(ctx, r, status, 0)
	if err == nil {
		d.settled.add(stored)
	}
	return err
}

// DefaultBackoff waits 0.1 s at first and 1 s at most.
var DefaultBackoff = backoff.BackoffConfig{MinBackoff: 100 * time.Millisecond, MaxBackoff: time.Second}

// maxMendings bounds how often an entry is mended.
const maxMendings = 8

// mend delivers a request that was refused in another form. Each part that is settled then
// is not sent again: mending goes on where it was when the time is up.
func (d *Delivery) mend(ctx context.Context, r *Request, refused *StatusError, times int) error {
	var mended []*Request
	what := ""
	if times < maxMendings && refused.Status != http.StatusRequestEntityTooLarge {
		mended, what = mend(r, refused)
	}
	switch n := len(r.Entries); {
	case mended != nil:
		times++
		d.mendings.Add(1)
		d.Log.Warn("loki refuses entries, which are mended: "+what, "stream", r.Labels, "entries", n, "err", refused)
	case n > 1: // one bad entry keeps no others back
		mended = []*Request{r.part(r.Entries[:n/2]), r.part(r.Entries[n/2:])}
	default:
		return d.bury(ctx, r, refused)
	}
	for _, part := range mended {
		stored := part.Encode()
		if d.settled.has(stored) {
			continue
		}
		body, tenant, err := PushBody(stored)
		if err != nil {
			return err
		}
		err = d.send(ctx, body, tenant, false)
		var status *StatusError
		if errors.As(err, &status) && status.isRefusal() {
			err = d.mend(ctx, part, status, times)
		}
		if err != nil {
			return err
		}
		d.settled.add(stored)
	}
	return nil
}

// settled are requests and parts of requests that were refused, and are delivered or given
// up by now: hashes of what is stored of them. It forgets all when it has many.
type settled struct {
	mu     sync.Mutex
	hashes map[uint64]struct{}
}

// maxSettled bounds them.
const maxSettled = 100_000

func (s *settled) add(stored []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hashes == nil || len(s.hashes) >= maxSettled {
		s.hashes = map[uint64]struct{}{}
	}
	s.hashes[xxhash.Sum64(stored)] = struct{}{}
}

func (s *settled) has(stored []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.hashes) == 0 {
		return false
	}
	_, ok := s.hashes[xxhash.Sum64(stored)]
	return ok
}

// bury gives an entry up that Loki refuses for ever; one that is too large is shipped in
// a shortened form besides.
func (d *Delivery) bury(ctx context.Context, r *Request, refused *StatusError) error {
	if err := d.Dead(fmt.Sprintf("%d %s", refused.Status, refused.Body), r); err != nil {
		return fmt.Errorf("%w: %w", ErrNotPutAway, err)
	}
	const shortLine = 4 << 10
	e := r.Entries[0]
	if refused.Status != http.StatusRequestEntityTooLarge || len(e.Line) <= shortLine {
		return nil
	}
	e.Line, e.Metadata = cutLine(e.Line, shortLine), nil
	body, tenant, err := PushBody(r.part([]Entry{e}).Encode())
	if err != nil {
		return err
	}
	err = d.send(ctx, body, tenant, false)
	var status *StatusError
	if errors.As(err, &status) && status.isRefusal() {
		return nil // the whole one is put away
	}
	return err
}

// send pushes until Loki takes or refuses the request, or ctx's time is up. A push that
// only tries whether Loki is reachable is made once.
func (d *Delivery) send(ctx context.Context, body []byte, tenant string, once bool) error {
	delays := backoff.New(ctx, d.Backoff)
	for try := 1; ; try++ {
		err := d.Client.Push(ctx, tenant, body)
		var status *StatusError
		if err == nil || errors.As(err, &status) && !status.isTransient() || once || ctx.Err() != nil || try == d.Backoff.MaxRetries {
			return err
		}
		wait := delays.NextDelay()
		if status != nil && status.RetryAfter > 0 {
			wait = status.RetryAfter
		}
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait+minPushTime {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
		d.retries.Add(1)
	}
}

// minPushTime is what a push must have left to be worth while.
const minPushTime = 100 * time.Millisecond

// IsAnswer reports whether an error of [Delivery.Deliver] is an answer of Loki, or of
// something before it, that can differ for another request: neither 5xx, nor that there
// was none.
func IsAnswer(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Status/100 <= 4 && status.Status != http.StatusRequestTimeout
}

// isTransient reports whether the same push can be taken later without anybody mending
// something.
func (e *StatusError) isTransient() bool {
	return e.Status == http.StatusRequestTimeout || e.Status == http.StatusTooManyRequests || e.Status/100 == 5 && !noSchema.MatchString(e.Body)
}

// isRefusal reports whether Loki refuses what is in the request. Other answers (401, 403,
// 404, redirects and those that nobody expects) say something of the way there: an
// operator mends it, and nothing is given up.
func (e *StatusError) isRefusal() bool {
	switch e.Status {
	case http.StatusRequestEntityTooLarge:
		return true
	case http.StatusBadRequest:
		return e.Body != "" && !isPage([]byte(e.Body)) && !onTheWay.MatchString(e.Body)
	case http.StatusUnprocessableEntity: // which Loki says of an empty push only
		return aboutEntries.MatchString(e.Body)
	}
	return e.Status/100 == 5 && noSchema.MatchString(e.Body)
}

// mayRefuse reports whether answers of a status can be refusals.
func mayRefuse(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusUnprocessableEntity || status == http.StatusRequestEntityTooLarge
}
