// Package ship is one output of the plugin: it turns chunks into events and delivers
// them. It knows nothing of C; package main hands it each chunk.
//
// A flush has two phases. Reading decodes, parses, enriches and encodes; it alone
// touches the chunk's memory, is bounded by its input and always runs to its end.
// Pushing works on bytes of our own, under a deadline.
package ship
