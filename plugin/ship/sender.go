package ship

import (
	"context"
	"io"
	"time"

	"flink-loki/plugin/loki"
)

// Sender sends dead letters again, as an output with the same options does.
type Sender struct {
	client   *loki.Client
	delivery *loki.Delivery
	refused  []loki.DeadLetter // by the present delivery
}

// sendTime bounds the delivery of one letter.
const sendTime = time.Minute

// NewSender returns a Sender; get returns the options, as for [ReadConfig]. Its log goes
// to log.
func NewSender(get func(name string) string, log io.Writer, version string) (*Sender, error) {
	cfg, err := ReadConfig(get)
	if err != nil {
		return nil, err
	}
	s := &Sender{}
	if s.client, err = loki.NewClient(cfg.URL, cfg.clientOptions(version)); err != nil {
		return nil, err
	}
	s.delivery = &loki.Delivery{Client: s.client, Log: NewLogger(log, cfg.LogLevel), Backoff: loki.DefaultBackoff}
	s.delivery.Dead = func(reason string, r *loki.Request) error {
		s.refused = append(s.refused, loki.NewDeadLetters(time.Now(), reason, r)...)
		return nil
	}
	return s, nil
}

// Send delivers a letter. refused are the letters that are left of it, nil where it is
// delivered; the letter itself where it is no entry. The error is Loki's or the network's.
func (s *Sender) Send(ctx context.Context, l *loki.DeadLetter) (refused []loki.DeadLetter, err error) {
	r, err := l.Request()
	if err != nil {
		return nil, err
	}
	if r == nil {
		return []loki.DeadLetter{*l}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	s.refused = nil
	err = s.delivery.Deliver(ctx, r.Encode())
	return s.refused, err
}

// Close lets go of idle connections.
func (s *Sender) Close() { s.client.Close() }
