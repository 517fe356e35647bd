package ruletest

import (
	"bytes"
	"fmt"
	"html/template"
	"math"
	"regexp"
	"strings"
	text "text/template"
	"unicode"

	"github.com/prometheus/common/helpers/templates"
)

// prelude gives templates of rules the names that they know.
const prelude = `{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}`

// functions are those that a template of a rule can call, in every Loki. Those that query,
// Loki's ruler does not have an answer for.
var functions = text.FuncMap{
	"args": func(args ...any) map[string]any {
		byName := map[string]any{}
		for i, a := range args {
			byName[fmt.Sprintf("arg%d", i)] = a
		}
		return byName
	},
	"humanize": func(v float64) string { return humanize(v, 1000, []string{"k", "M", "G", "T", "P", "E", "Z", "Y"}) },
	"humanize1024": func(v float64) string {
		return humanize(v, 1024, []string{"ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi"})
	},
	"humanizeDuration":   func(v any) (string, error) { return templates.HumanizeDuration(v) },
	"humanizePercentage": func(v float64) string { return fmt.Sprintf("%.4g%%", v*100) },
	"humanizeTimestamp":  func(v any) (string, error) { return templates.HumanizeTimestamp(v) },
	"match":              regexp.MatchString,
	"reReplaceAll": func(pattern, by, s string) (string, error) {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return "", err
		}
		return re.ReplaceAllString(s, by), nil
	},
	"safeHtml": func(s string) template.HTML { return template.HTML(s) },
	"title": func(s string) string {
		before := ' '
		return strings.Map(func(r rune) rune {
			first := !unicode.IsLetter(before) && !unicode.IsDigit(before) && before != '_' && before != '\''
			if before = r; first {
				return unicode.ToTitle(r)
			}
			return r
		}, s)
	},
	"toLower": strings.ToLower,
	"toUpper": strings.ToUpper,
}

// humanize writes a number with the prefix of its magnitude.
func humanize(v, base float64, prefixes []string) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Sprintf("%.4g", v)
	}
	if math.Abs(v) < 1 {
		if base != 1000 {
			return fmt.Sprintf("%.4g", v)
		}
		prefix := ""
		for _, p := range []string{"m", "u", "n", "p", "f", "a", "z", "y"} {
			if math.Abs(v) >= 1 {
				break
			}
			prefix, v = p, v*1000
		}
		return fmt.Sprintf("%.4g%s", v, prefix)
	}
	prefix := ""
	for _, p := range prefixes {
		if math.Abs(v) < base {
			break
		}
		prefix, v = p, v/base
	}
	return fmt.Sprintf("%.4g%s", v, prefix)
}

// expand fills in the template of a label or annotation.
func expand(s string, labels map[string]string, value float64) (string, error) {
	if !strings.Contains(s, "{{") {
		return s, nil
	}
	t, err := text.New("").Funcs(functions).Option("missingkey=zero").Parse(prelude + s)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = t.Execute(&b, map[string]any{"Labels": labels, "ExternalLabels": map[string]string{}, "ExternalURL": "", "Value": value})
	return b.String(), err
}
