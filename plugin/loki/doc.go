// Package loki places events in Loki's data model and pushes them.
//
// The push message is Loki's logproto.PushRequest (grafana/loki pkg/push/push.proto),
// which has four small types; it is written field by field.
package loki
