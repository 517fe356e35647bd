package loki

import "sync"

// circuit keeps an outage from costing each flush its whole time: while it is open, one
// push at a time tries whether Loki is back, and the others are not made.
type circuit struct {
	mu      sync.Mutex
	open    bool
	probing bool
}

// enter asks to push. probe says that the push is the one that tries; the caller must
// then call leave.
func (c *circuit) enter() (probe, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.open {
		return false, true
	}
	if c.probing {
		return false, false
	}
	c.probing = true
	return true, true
}

// leave notes whether Loki could be reached, and reports whether that is a change.
func (c *circuit) leave(probe, reached bool) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if probe {
		c.probing = false
	}
	changed = c.open == reached
	c.open = !reached
	return changed
}
