package agent

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

// TestHost_metricsListen: outputs of one agent share an address, which is free again when
// they have gone; one that another program has stops the start.
func TestHost_metricsListen(t *testing.T) {
	_, url := newLoki(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	script := ""
	for _, output := range []string{"a", "b", "c"} {
		script += fmt.Sprintf("output %[1]s\nset %[1]s url %[2]s\nset %[1]s metrics_listen %[3]s\n", output, url, address)
	}
	script += fmt.Sprintf("output d\nset d url %s\nset d bearer_token TOPSECRET\nset d metrics_listen %s\n", url, taken.Addr())
	answers, log := runHost(t, script+"init a\ninit b\nexit a\nexit b\ninit c\ninit d\nexit c\nunregister\n")
	expectAnswers(t, answers, "register flink_loki", "init a 1", "init b 1", "exit a 1", "exit b 1", "init c 1", "init d 0", "exit c 1", "unregister")
	if !strings.Contains(log, "option metrics_listen") || !strings.Contains(log, taken.Addr().String()) || strings.Contains(log, "TOPSECRET") {
		t.Errorf("the log is\n%s", log)
	}
}
