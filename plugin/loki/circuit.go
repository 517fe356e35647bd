package loki

import "sync"

// circuit keeps an outage from costing each flush its whole time: while it is open, one
// push at a time tries whether Loki is back, and the others are not made.
type circuit struct {
	open    bool
	probing bool
}

// enter asks to push. probe says that the push is the one that tries; the caller must
// then call leave.
func (c *circuit) enter() (probe, ok bool) {
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
	if probe {
		c.probing = false
	}
	changed = c.open == reached
	c.open = !reached
	return changed
}

// circuits are those of the tenants that are not reachable: the limits of one keep no other
// back.
type circuits struct {
	mu       sync.Mutex
	byTenant map[string]*circuit
}

// maxCircuits bounds the tenants, whose names others give.
const maxCircuits = 10_000

func (c *circuits) enter(tenant string) (probe, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if its := c.byTenant[tenant]; its != nil {
		return its.enter()
	}
	return false, true
}

// release gives up a try that came to nothing.
func (c *circuits) release(tenant string, probe bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if its := c.byTenant[tenant]; its != nil && probe {
		its.probing = false
	}
}

func (c *circuits) leave(tenant string, probe, reached bool) (changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	its := c.byTenant[tenant]
	switch {
	case its == nil && reached:
		return false
	case its == nil:
		if c.byTenant == nil || len(c.byTenant) == maxCircuits {
			c.byTenant = map[string]*circuit{}
		}
		its = &circuit{}
		c.byTenant[tenant] = its
	case reached:
		delete(c.byTenant, tenant)
	}
	return its.leave(probe, reached)
}
