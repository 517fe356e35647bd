package fakeloki

import (
	"net/http"
)

// fault is a scripted answer to one push.
type fault struct {
	// play is nil where the push is answered by the rules.
	play func(l *Loki, w http.ResponseWriter, r *http.Request, n int, store func())
}

// FailNext answers each of the next n pushes with a status, headers and a body, and stores nothing.
// header may be nil. Faults are met in the order in which they were asked for, one per push.
func (l *Loki) FailNext(n int, status int, header http.Header, body string) {
	l.script(n, fault{func(l *Loki, w http.ResponseWriter, _ *http.Request, n int, _ func()) {
		for name, values := range header {
			w.Header()[http.CanonicalHeaderKey(name)] = values
		}
		l.answered(n, status)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}})
}

// HangNext leaves each of the next n pushes without answer and stores nothing: it holds them until the
// client gives up or Close is called, and then closes the connection.
func (l *Loki) HangNext(n int) {
	l.script(n, fault{func(l *Loki, w http.ResponseWriter, r *http.Request, _ int, _ func()) {
		select {
		case <-r.Context().Done():
		case <-l.closed:
		}
		hangUp(w)
	}})
}

// StoreButLoseReply stores each of the next n pushes by the rules and closes the connection instead of
// answering: what a sender sees when the network fails after Loki has done its work.
func (l *Loki) StoreButLoseReply(n int) {
	l.script(n, fault{func(_ *Loki, w http.ResponseWriter, _ *http.Request, _ int, store func()) {
		store()
		hangUp(w)
	}})
}

// CloseConnection closes the connection of each of the next n pushes and stores nothing.
func (l *Loki) CloseConnection(n int) {
	l.script(n, fault{func(_ *Loki, w http.ResponseWriter, _ *http.Request, _ int, _ func()) { hangUp(w) }})
}

// Pass answers each of the next n pushes by the rules: a step between scripted faults.
func (l *Loki) Pass(n int) {
	l.script(n, fault{})
}

// ClearFaults forgets the scripted answers that no push has met yet.
func (l *Loki) ClearFaults() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = nil
}

// FaultsLeft returns how many scripted answers no push has met yet.
func (l *Loki) FaultsLeft() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.faults)
}

func (l *Loki) script(n int, f fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range n {
		l.faults = append(l.faults, f)
	}
}

// nextFault takes the first fault off the script, nil where there is none; l.mu is held.
func (l *Loki) nextFault() *fault {
	if len(l.faults) == 0 {
		return nil
	}
	f := l.faults[0]
	l.faults = l.faults[1:]
	return &f
}

// hangUp closes the connection without an answer. Where that can't be done (HTTP/2, a recorder) it
// answers 502, as a gateway would.
func hangUp(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	_ = conn.Close()
}
