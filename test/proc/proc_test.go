package proc

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestStart_diesWithParent kills a process that has started another and looks for that one.
func TestStart_diesWithParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a child with its parent")
	}
	if os.Getenv("PROC_TEST_PARENT") != "" {
		c, err := Start(exec.Command("sleep", "600"), false)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("child %d\n", c.Pid)
		<-c.Ended()
		return
	}
	t.Parallel()
	parent := exec.Command(os.Args[0], "-test.run=^TestStart_diesWithParent$", "-test.v")
	parent.Env = append(os.Environ(), "PROC_TEST_PARENT=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		_, _ = fmt.Sscanf(lines.Text(), "child %d", &pid)
	}
	if pid == 0 {
		t.Fatal("no child")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	for running(pid) {
		time.Sleep(10 * time.Millisecond) // the test's own time limit bounds the wait
	}
}

// running says whether a process is there and not a zombie that nobody has waited for.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
