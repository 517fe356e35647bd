// Package main is the Fluent Bit output plugin flink_loki, built as a shared object
// (go build -buildmode=c-shared).
//
// It is a thin shell: each callback validates what it was given, hands over to a
// goroutine and waits. A goroutine of our own has a stack of its own, where Fluent
// Bit's coroutines have little, and it can recover: a panic that leaves a callback
// ends the agent. This file and init.c are the only ones that know C.
package main

import "C"

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	_ "time/tzdata" // zone names work on hosts without a zone database
	"unsafe"

	"github.com/fluent/fluent-bit-go/output"

	"flink-loki/plugin/ship"
)

const (
	name        = "flink_loki"
	description = "Typed Flink and RocksDB checkpoint events for Loki"
)

// version is the plugin's, set when it is built.
var version = "dev"

const (
	// exitWait bounds how long an exit waits for flushes that are being cancelled.
	exitWait = time.Second
	// initWait bounds how long Fluent Bit's start waits for ours.
	initWait = 10 * time.Second
	// gcPercent makes the collector wait for 16 MB of garbage instead of 4: at the default,
	// its runs cost more than the plugin's own work. GOGC in the environment overrides it.
	gcPercent = 400
	// pushSlack is how much longer than its own timeout a flush is awaited.
	pushSlack = 250 * time.Millisecond
)

// instance is what Fluent Bit's context of one output points to. fluent-bit-go keeps
// contexts for ever, so it holds nothing once the output has ended.
type instance struct {
	output     atomic.Pointer[ship.Output]
	log        *slog.Logger
	timeout    time.Duration
	initThread int
	warned     atomic.Bool
}

//export FLBPluginRegister
func FLBPluginRegister(def unsafe.Pointer) int {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	return output.FLBPluginRegister(def, name, description)
}

//export FLBPluginUnregister
func FLBPluginUnregister(def unsafe.Pointer) {
	output.FLBPluginUnregister(def)
}

// flinkLokiInit is FLBPluginInit, which init.c calls.
//
//export flinkLokiInit
func flinkLokiInit(plugin unsafe.Pointer) C.int {
	thread := syscall.Gettid()
	values := map[string]string{} // plugin is valid only during this call
	for _, o := range ship.Options {
		values[o.Name] = output.FLBPluginConfigKey(plugin, o.Name)
	}
	log := ship.NewLogger(os.Stderr, slog.LevelInfo)
	inst, ok := guard(log, initWait, nil, func() *instance {
		cfg, err := ship.ReadConfig(func(option string) string { return values[option] })
		if err != nil {
			log.Error("the configuration can't be used", "err", err)
			return nil
		}
		tune(cfg)
		log := ship.NewLogger(os.Stderr, cfg.LogLevel)
		out, err := ship.New(cfg, log, version)
		if err != nil {
			log.Error("can't start", "err", err)
			return nil
		}
		inst := &instance{log: log, timeout: cfg.Timeout, initThread: thread}
		inst.output.Store(out)
		return inst
	})
	if !ok {
		log.Error("can't start: that did not end in time, or met a bug; does a file system hang that an option names?", "waited", initWait)
	}
	if !ok || inst == nil {
		return C.int(output.FLB_ERROR)
	}
	output.FLBPluginSetContext(plugin, inst)
	return C.int(output.FLB_OK)
}

var tuning sync.Mutex

// tune gives the Go runtime what an output allows it, unless another one has allowed
// more or the environment says otherwise.
func tune(cfg *ship.Config) {
	tuning.Lock()
	defer tuning.Unlock()
	if os.Getenv("GOMAXPROCS") == "" && (!tuned.procs || cfg.MaxProcs > runtime.GOMAXPROCS(0)) {
		runtime.GOMAXPROCS(min(cfg.MaxProcs, runtime.NumCPU()))
		tuned.procs = true
	}
	if os.Getenv("GOMEMLIMIT") == "" && cfg.MemoryLimit > tuned.memory {
		debug.SetMemoryLimit(cfg.MemoryLimit)
		tuned.memory = cfg.MemoryLimit
	}
}

var tuned struct {
	procs  bool
	memory int64
}

//export FLBPluginFlushCtx
func FLBPluginFlushCtx(ctx, data unsafe.Pointer, length C.int, tag *C.char) int {
	inst, ok := output.FLBPluginGetContext(ctx).(*instance)
	if !ok || data == nil || length < 0 || tag == nil {
		return output.FLB_RETRY
	}
	out := inst.output.Load()
	if out == nil {
		return output.FLB_RETRY
	}
	if syscall.Gettid() == inst.initThread && !inst.warned.Swap(true) {
		inst.log.Warn("flush runs on Fluent Bit's main thread, so a slow Loki stops the whole agent: set `Workers 1` on this output")
	}
	chunk, tagText := unsafe.Slice((*byte)(data), int(length)), C.GoString(tag)
	read := make(chan struct{})
	result, ok := guard(inst.log, inst.timeout+pushSlack, read, func() ship.Result {
		return out.Flush(tagText, chunk, func() { close(read) })
	})
	if ok && result == ship.OK {
		return output.FLB_OK
	}
	return output.FLB_RETRY
}

//export FLBPluginExitCtx
func FLBPluginExitCtx(ctx unsafe.Pointer) int {
	inst, ok := output.FLBPluginGetContext(ctx).(*instance)
	if !ok {
		return output.FLB_OK
	}
	if out := inst.output.Swap(nil); out != nil {
		guard(inst.log, 2*exitWait, nil, func() struct{} {
			out.Close(exitWait)
			return struct{}{}
		})
	}
	return output.FLB_OK
}

// guard runs work in a goroutine and waits for it: first without a limit until read is
// closed or work ends, then at most wait. ok is false where work panicked or did not
// end in time; then it goes on by itself, and only what it may still touch is its own.
func guard[T any](log *slog.Logger, wait time.Duration, read <-chan struct{}, work func() T) (T, bool) {
	type outcome struct {
		result T
		ok     bool
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			if p := recover(); p != nil {
				log.Error("a bug in the plugin was caught; please report it", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			}
			done <- o
		}()
		o = outcome{work(), true}
	}()
	if read != nil {
		select {
		case <-read:
		case o := <-done:
			return o.result, o.ok
		}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case o := <-done:
		return o.result, o.ok
	case <-timer.C:
		return outcome{}.result, false
	}
}

func main() {}
