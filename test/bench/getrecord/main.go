// Package main is an output plugin that does what most Go plugins do: it decodes chunks
// with fluent-bit-go's GetRecord, and nothing more. The benchmark runs it beside ours.
package main

import "C"

import (
	"unsafe"

	"github.com/fluent/fluent-bit-go/output"
)

//export FLBPluginRegister
func FLBPluginRegister(def unsafe.Pointer) int {
	return output.FLBPluginRegister(def, "getrecord", "adds up the lengths of lines")
}

//export FLBPluginInit
func FLBPluginInit(unsafe.Pointer) int { return output.FLB_OK }

//export FLBPluginFlush
func FLBPluginFlush(data unsafe.Pointer, length C.int, _ *C.char) int {
	decoder := output.NewDecoder(data, int(length))
	total := 0
	for {
		ret, _, record := output.GetRecord(decoder)
		if ret != 0 {
			break
		}
		for _, value := range record {
			if text, ok := value.([]byte); ok {
				total += len(text)
			}
		}
	}
	sink = total
	return output.FLB_OK
}

var sink int

//export FLBPluginExit
func FLBPluginExit() int { return output.FLB_OK }

func main() {}
