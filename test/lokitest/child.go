package lokitest

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// child is a running Loki process.
type child struct {
	process *os.Process
	ended   chan struct{} // closed when the process is gone
}

// spawn starts a process that the system ends when this one ends, however it ends (on Linux).
func spawn(cmd *exec.Cmd) (*child, error) {
	endWithParent(cmd)
	c := &child{ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// "Parent" is the thread that started the process: it must live as long as the process does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		c.process = cmd.Process
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait()
		close(c.ended)
	}()
	return c, <-started
}

// kill ends the process at once and returns when it is gone.
func (c *child) kill() {
	_ = c.process.Kill()
	<-c.ended
}

// terminate asks the process to end, and ends it after 10 s.
func (c *child) terminate() {
	_ = c.process.Signal(syscall.SIGTERM)
	select {
	case <-c.ended:
	case <-time.After(10 * time.Second):
		c.kill()
	}
}
