// A Go runtime does not survive a fork: its threads are not in the child. Fluent Bit
// loads plug-ins before it forks for "Daemon On", so a call from there into Go would hang
// the agent for ever. This side of the border needs no Go to see that, and refuses.

#include <pthread.h>
#include <stdio.h>

#include "_cgo_export.h"

#define FLB_ERROR 0 // of fluent-bit's include/fluent-bit/flb_output.h

static volatile int forked;

static void in_child(void) { forked = 1; }

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, in_child); }

int FLBPluginInit(void *plugin) {
    if (forked) {
        fputs("[error] [flink_loki] Fluent Bit has forked, and a Go plug-in can't go on in the child: "
              "take out Daemon On (-d), and let a service manager run Fluent Bit in the background\n", stderr);
        return FLB_ERROR;
    }
    return flinkLokiInit(plugin);
}
