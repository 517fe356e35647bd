// Package rules has the alert rules for Loki's ruler, and renders them with settings.
//
// The rules are written once, in templates/*.yaml. A template is a rule file of Loki's ruler with
// ${name} for what is set: one of [Settings], or one of the phrases that several rules share. The
// files *.yaml beside it are the templates with the settings' defaults, for those who need no
// renderer; "make golden" writes them, and a test compares.
//
// The queries keep to the LogQL that Loki 2.2.1 and 3.x share: no offset, no on() and group_left, no
// last_over_time. What the rules have to mind:
//
//   - Fields are labels only behind "| logfmt", and an absent field is an empty label.
//   - Behind unwrap stands __error__="": entries without the field make the query fail otherwise.
//   - Every query aggregates by labels that it names: the line's other fields would be series of
//     their own, and 500 series of a rule are an error. A rule that a whole fleet can raise has none.
//   - Without on(), both sides of "and" and "unless" have the same labels.
//   - Loki's ruler does not wait for late events: ranges are longer than what they are about.
package rules

import "embed"

//go:embed templates/*.yaml
var templates embed.FS

//go:embed alertmanager.yaml
var alertmanager []byte
