// Package proc runs the servers and agents of tests: processes that end when the test
// ends, however it ends.
package proc

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Process is a process that was started here.
type Process struct {
	*os.Process
	ended chan struct{}
	err   error // of Wait; to be read when ended is closed
}

// Start starts a command. On Linux the system ends it when this process ends; with
// outlive it goes on.
func Start(cmd *exec.Cmd, outlive bool) (*Process, error) {
	if outlive {
		leaveParent(cmd)
	} else {
		endWithParent(cmd)
	}
	p := &Process{ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// "Parent" is the thread that started the process: it must live as long as the process does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		p.Process = cmd.Process
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, <-started
}

// Ended is closed when the process is gone.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Wait returns when the process is gone, with the error of [exec.Cmd.Wait].
func (p *Process) Wait() error {
	<-p.ended
	return p.err
}

// Kill ends the process at once and returns when it is gone.
func (p *Process) Kill() {
	_ = p.Process.Kill()
	<-p.ended
}

// Terminate asks the process to end, ends it after 10 s, and returns as Wait does.
func (p *Process) Terminate() error {
	_ = p.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		p.Kill()
	}
	return p.err
}
