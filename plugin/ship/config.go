package ship

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/grafana/loki-client-go/pkg/labelutil"
	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"

	"flink-loki/parsers"
	"flink-loki/parsers/layout"
	"flink-loki/plugin/loki"
	"flink-loki/plugin/record"
)

// Config is the configuration of one output.
type Config struct {
	URL       *url.URL
	TenantID  string
	TenantKey TenantKey
	// HTTP is how Loki is spoken to: credentials, TLS, proxy and further headers. It holds
	// secrets: it is never to be printed.
	HTTP      config.HTTPClientConfig
	Placement loki.Placement
	// MaxLabelValues bounds the values of a label within an hour.
	MaxLabelValues int
	Kinds          map[string]bool // names of the kinds that are sent
	Keys           record.Keys
	// RecordFields are the event fields that records tell: the first of Keys.Fields, in
	// the same order.
	RecordFields []RecordField
	JSONKeys     *layout.Keys
	Node         string
	NodeIsSet    bool // by the option; else a record's own is better
	Location     *time.Location
	LearnZone    bool     // from the lines; Location only until then
	Metrics      []string // nil for the default ones
	StatePath    string
	// DeadLetterPath is empty for none; DeadLetterSize in bytes.
	DeadLetterPath string
	DeadLetterSize int64
	// MaxProcs and MemoryLimit, in bytes, are the Go runtime's in the agent's process.
	MaxProcs    int
	MemoryLimit int64
	Timeout     time.Duration
	intervals   intervals
	LogLevel    slog.Level
	// MetricsListen is where the plugin's own metrics are read, empty for nowhere.
	MetricsListen string

	// rendering is the values of the options that decide how a chunk is rendered. It
	// tells apart the outputs that share a state_path.
	rendering string
}

// RecordField is an event field that is read from a record.
type RecordField struct {
	Field parsers.Field
	Path  string // of the record key, with dots
}

// Option is one option of the output, as users write it in Fluent Bit's
// configuration.
type Option struct {
	Name string
	// Default is the value that stands for an option that is not set.
	Default string
	// Unit says what a value is: a unit, a type, or the values that are allowed.
	Unit string
	// Help says in a sentence or two what the option does.
	Help string

	set func(*Config, string) error
	// local options change nothing in what is sent.
	local bool
	// secret options have values that no log and no error may show.
	secret bool
}

// Options lists every option of the output, in the order of the documentation.
var Options = []Option{
	{
		Name: "url", Default: "http://localhost:3100", Unit: "URL",
		Help: "Where Loki is. Without a path, `/loki/api/v1/push` is added.",
		set:  setURL,
	}, {
		Name: "tenant_id", Unit: "text",
		Help: "Tenant, sent as `X-Scope-OrgID`. Empty: no tenant is sent.",
		set:  setTenant,
	}, {
		Name: "tenant_id_key", Unit: "event field or record key",
		Help: "What tells the tenant of each event: an event field such as `namespace`, or a record key, with dots or as " +
			"`$kubernetes['labels']['team']`. Events without it are `tenant_id`'s.",
		set: setTenantKey,
	}, {
		Name: "http_user", Unit: "text", local: true,
		Help: "User for basic authentication.",
		set:  setUser,
	}, {
		Name: "http_passwd", Unit: "text", local: true, secret: true,
		Help: "Password of `http_user`.",
		set:  setPassword,
	}, {
		Name: "bearer_token", Unit: "text", local: true, secret: true,
		Help: "Token that is sent as `Authorization: Bearer`.",
		set:  func(c *Config, v string) error { c.HTTP.BearerToken = config.Secret(v); return nil },
	}, {
		Name: "bearer_token_file", Unit: "file", local: true,
		Help: "File with that token. It is read for each push, so a new token is used as soon as it is there.",
		set:  func(c *Config, v string) error { c.HTTP.BearerTokenFile = v; return checkToken(v) },
	}, {
		Name: "tls_ca_file", Unit: "PEM file", local: true,
		Help: "Certificates of the authorities that Loki's certificate may be from. Empty: the host's. Files of TLS are read again when they change.",
		set:  func(c *Config, v string) error { c.HTTP.TLSConfig.CAFile = v; return checkAuthorities(v) },
	}, {
		Name: "tls_crt_file", Unit: "PEM file", local: true,
		Help: "The agent's own certificate, for a Loki or gateway that wants one.",
		set:  func(c *Config, v string) error { c.HTTP.TLSConfig.CertFile = v; return checkReadable(v) },
	}, {
		Name: "tls_key_file", Unit: "PEM file", local: true,
		Help: "Key of `tls_crt_file`, without a password.",
		set:  func(c *Config, v string) error { c.HTTP.TLSConfig.KeyFile = v; return checkReadable(v) },
	}, {
		Name: "tls_server_name", Unit: "host name", local: true,
		Help: "Name that Loki's certificate must have. Empty: the host of `url`.",
		set:  func(c *Config, v string) error { c.HTTP.TLSConfig.ServerName = v; return nil },
	}, {
		Name: "tls_min_version", Default: "TLSv1.2", Unit: "`TLSv1.2` or `TLSv1.3`", local: true,
		Help: "Oldest version of TLS that is spoken.",
		set:  setMinVersion,
	}, {
		Name: "tls_verify", Default: "on", Unit: "`on` or `off`", local: true,
		Help: "Check Loki's certificate. `off` lets anybody on the way read and change what is sent: only for tests.",
		set:  setVerify,
	}, {
		Name: "proxy_url", Unit: "URL", local: true,
		Help: "Proxy on the way to Loki: `http://`, `https://` or `socks5://`. Empty: none, whatever the environment says.",
		set:  setProxy,
	}, {
		Name: "headers", Unit: "name=value, …", local: true, secret: true,
		Help: "Further HTTP headers of each push.",
		set:  setHeaders,
	}, {
		Name: "labels", Unit: "name=value, …",
		Help: "Labels that every stream gets, such as `cluster=prod`.",
		set:  setLabels,
	}, {
		Name: "label_keys", Default: "component,event,level", Unit: "event fields, …",
		Help: "Event fields that become stream labels. Each distinct value makes streams of its own: keep them few.",
		set:  setLabelKeys,
	}, {
		Name: "max_label_values", Default: "1000", Unit: "number",
		Help: "How many values a label of `label_keys` may have within an hour. Further ones are left out of the labels: the line has them.",
		set:  setMaxLabelValues,
	}, {
		Name: "structured_metadata", Default: "off", Unit: "`on` or `off`",
		Help: "Send job, checkpoint, task and host as structured metadata as well (Loki 3.x).",
		set:  func(c *Config, v string) (err error) { c.Placement.Metadata, err = parseSwitch(v); return err },
	}, {
		Name: "kinds", Default: "default", Unit: "`default`, `core`, `all` or a list",
		Help: "Which kinds of events are sent. A list adds and takes away: `default,+barrier_received,-task_deploying`; " +
			"one that starts with `+` or `-` does so with the default.",
		set: setKinds,
	}, {
		Name: "log_key", Default: "log", Unit: "record key",
		Help: "Record key of the log line. Where a record lacks it: `message`, else the only text of the record.",
		set:  func(c *Config, v string) error { c.Keys.Log = v; return nil },
	}, {
		Name: "filename_key", Default: "filename", Unit: "record key",
		Help: "Record key of the file name: tail's `Path_Key`.",
		set:  func(c *Config, v string) error { c.Keys.Filename = v; return nil },
	}, {
		Name: "offset_key", Default: "offset", Unit: "record key",
		Help: "Record key of the line's byte offset: tail's `Offset_Key`.",
		set:  func(c *Config, v string) error { c.Keys.Offset = v; return nil },
	}, {
		Name: "record_fields", Unit: "field=record key, …",
		Default: defaultRecordFields,
		Help: "Event fields that are read from the record. Dots lead into maps; `$kubernetes['pod_name']` is understood as well. " +
			"A list that starts with `+` adds to the default.",
		set: setRecordFields,
	}, {
		Name: "json_keys", Unit: "part=key, …",
		Help: "Further keys of JSON layouts: `time`, `level`, `thread`, `logger`, `message` and `trace`, such as `message=text,logger=log.name`. " +
			"The keys of the usual layouts are known.",
		set: setJSONKeys,
	}, {
		Name: "metrics", Unit: "names, …",
		Help: "Metrics of Flink's reports in the log that become events, `*` standing for any text. With `+` before each they are added to the default ones.",
		set:  setMetrics,
	}, {
		Name: "node", Unit: "text",
		Help: "Name of this host on every event. Empty: the record's (`record_fields`), else the host's own name.",
		set:  setNode,
	}, {
		Name: "timezone", Unit: "IANA name or `auto`",
		Help: "Zone of the times in the logs, which print none. Empty: the agent's zone. " +
			"`auto`: learnt for each file from lines that tell it, the agent's zone until then.",
		set: setTimezone,
	}, {
		Name: "intervals_path", Unit: "YAML file",
		Help: "What is expected of the checkpoints of some jobs: a list of `job_name` (a regular expression) or `job_id`, with `interval` and `timeout`. " +
			"Empty: what the job has shown, else what Flink's configuration in the log says.",
		set: setIntervals,
	}, {
		Name: "state_path", Unit: "directory", local: true,
		Help: "Where rendered chunks are kept until they are delivered, so that a retry after a restart sends the same bytes. Empty: in memory.",
		set:  func(c *Config, v string) (err error) { c.StatePath, err = cleanPath(v); return err },
	}, {
		Name: "dead_letter_path", Unit: "file", local: true,
		Help: "Where entries go that Loki refuses for ever, and what can't be read of a chunk: one line of JSON each, on the disk before the chunk is let go. " +
			"`flink-loki ship` sends them again. Empty: they are counted and logged.",
		set: func(c *Config, v string) (err error) { c.DeadLetterPath, err = cleanPath(v); return err },
	}, {
		Name: "dead_letter_size", Default: "64MB", Unit: "bytes", local: true,
		Help: "When the dead-letter file is as large as this, it is renamed to its name with `.1`; four such files are kept.",
		set:  setDeadLetterSize,
	}, {
		Name: "timeout", Default: "4s", Unit: "duration", local: true,
		Help: "Bound on everything within one flush. Keep it below Fluent Bit's `Grace` (5 s).",
		set:  setTimeout,
	}, {
		Name: "max_procs", Default: "2", Unit: "number", local: true,
		Help: "How many cores the plugin may use at a time; of several outputs the highest number counts. `GOMAXPROCS` in the environment takes precedence.",
		set:  setMaxProcs,
	}, {
		Name: "memory_limit", Default: "256MB", Unit: "bytes", local: true,
		Help: "From here on the plugin collects garbage at all costs; it is no bound on what it needs. The highest of several outputs counts. `GOMEMLIMIT` in the environment takes precedence.",
		set:  setMemoryLimit,
	}, {
		Name: "plugin_log_level", Default: "info", Unit: "`error`, `warn`, `info` or `debug`", local: true,
		Help: "What the plugin itself logs.",
		set:  setLogLevel,
	}, {
		Name: "metrics_listen", Unit: "host:port", local: true,
		Help: "Where the plug-in's own metrics can be read, such as `127.0.0.1:2021`; a port alone is one on loopback. Empty: nowhere.",
		set:  setMetricsListen,
	},
}

// OptionByName returns the option with that name, and whether there is one.
func OptionByName(name string) (Option, bool) {
	for _, o := range Options {
		if o.Name == name {
			return o, true
		}
	}
	return Option{}, false
}

// ReadConfig reads all options through get, which returns "" for one that is not set
// (Fluent Bit can't tell the two apart, and can't list the names that were given). The
// error names every option with a bad value, and what is allowed.
func ReadConfig(get func(name string) string) (*Config, error) {
	c := &Config{HTTP: config.DefaultHTTPClientConfig}
	given := map[string]bool{}
	var errs []error
	for _, o := range Options {
		value := strings.TrimSpace(get(o.Name))
		given[o.Name] = value != ""
		if value == "" {
			value = o.Default
		}
		if !o.local {
			c.rendering += o.Name + "=" + hideUser(value) + "\n"
		}
		if err := o.set(c, value); err != nil {
			errs = append(errs, o.refuse(value, err))
		}
	}
	errs = append(errs, c.checkSecurity(given)...)
	c.Keys.Parts, c.Keys.Whole = c.JSONKeys, parsers.IsAnswerKey
	c.Keys.Fields = nil
	for _, f := range c.RecordFields {
		c.Keys.Fields = append(c.Keys.Fields, f.Path)
	}
	c.Keys.Fields = append(c.Keys.Fields, urlKey)
	if c.TenantKey.path != "" {
		c.Keys.Fields = append(c.Keys.Fields, c.TenantKey.path)
	}
	c.Keys.Prepare()
	return c, errors.Join(append(errs, c.checkLabels())...)
}

// urlKey is the record key of the URL that gave an answer of Flink's REST API.
const urlKey = "url"

// refuse says that an option can't have a value, and why.
func (o *Option) refuse(value string, why error) error {
	if o.secret {
		return fmt.Errorf("option %s: %w", o.Name, why)
	}
	return fmt.Errorf("option %s, value %q: %w", o.Name, hideUser(value), why)
}

func setURL(c *Config, v string) (err error) {
	if c.URL, err = parseURL(v); err != nil {
		return err
	}
	return loki.CheckURL(c.URL)
}

func setLabels(c *Config, v string) error {
	if v == "" {
		return nil
	}
	var set labelutil.LabelSet
	if err := set.Set(v); err != nil {
		return fmt.Errorf("%w: give name=value, separated by commas", err)
	}
	c.Placement.Labels = model.LabelSet{}
	for name, value := range set.LabelSet {
		name, value := strings.TrimSpace(string(name)), strings.TrimSpace(string(value))
		if !model.LegacyValidation.IsValidLabelName(name) {
			return fmt.Errorf("%q is no label name: it may have letters, digits and _, and starts with no digit", name)
		}
		c.Placement.Labels[model.LabelName(name)] = model.LabelValue(value)
	}
	return nil
}

func setLabelKeys(c *Config, v string) error {
	c.Placement.LabelKeys = nil
	for name := range strings.SplitSeq(v, ",") {
		name = strings.TrimSpace(name)
		f, ok := parsers.FieldByName(name)
		if !ok || !labelField(f) {
			return fmt.Errorf("%q is no event field; allowed are %s", name, strings.Join(labelFieldNames(), ", "))
		}
		if !slices.Contains(c.Placement.LabelKeys, f) {
			c.Placement.LabelKeys = append(c.Placement.LabelKeys, f)
		}
	}
	return nil
}

// labelField reports whether a field may be a label: what differs on each line would
// make a stream of each.
func labelField(f parsers.Field) bool {
	switch f {
	case parsers.Time, parsers.RecordTime, parsers.Message, parsers.Offset, parsers.Seq, parsers.Part:
		return false
	}
	return !parsers.Fields[f].Lesson
}

func labelFieldNames() []string {
	var names []string
	for i, f := range parsers.Fields {
		if labelField(parsers.Field(i)) {
			names = append(names, f.Name)
		}
	}
	return names
}

func setMaxLabelValues(c *Config, v string) (err error) {
	if c.MaxLabelValues, err = strconv.Atoi(v); err != nil || c.MaxLabelValues <= 0 {
		return errors.New("give a number above 0")
	}
	return nil
}

// maxLabels is how many labels Loki takes of a stream (limits_config,
// max_label_names_per_series), less the one that late entries get.
const maxLabels = 15 - 1

// checkLabels reports labels that Loki would refuse.
func (c *Config) checkLabels() error {
	for _, f := range c.Placement.LabelKeys {
		if _, ok := c.Placement.Labels[model.LabelName(parsers.Fields[f].Name)]; ok {
			return fmt.Errorf("options labels and label_keys: both give the label %s: take it from one of them", parsers.Fields[f].Name)
		}
	}
	if n := len(c.Placement.Labels) + len(c.Placement.LabelKeys); n > maxLabels {
		return fmt.Errorf("options labels and label_keys: %d labels, and Loki takes %d: name fewer", n, maxLabels)
	}
	return nil
}

// setKinds reads "default", "core", "all" or the name of a kind, and more of them behind
// + (which may be left out) or -.
func setKinds(c *Config, v string) error {
	c.Kinds = map[string]bool{}
	if strings.HasPrefix(v, "+") || strings.HasPrefix(v, "-") {
		v = "default," + v
	}
	for item := range strings.SplitSeq(v, ",") {
		item = strings.TrimSpace(item)
		name := strings.TrimLeft(item, "+-")
		known := false
		for _, kind := range parsers.Kinds {
			if name == "all" || name == "core" && kind.Core || name == "default" && !kind.Quiet || name == kind.Name {
				c.Kinds[kind.Name] = !strings.HasPrefix(item, "-")
				known = true
			}
		}
		if !known {
			return fmt.Errorf("%q is no kind of event; allowed are default, core, all and the kinds of the event reference", name)
		}
	}
	return nil
}

func parseSwitch(v string) (bool, error) {
	switch strings.ToLower(v) {
	case "on", "true", "yes":
		return true, nil
	case "off", "false", "no":
		return false, nil
	}
	return false, errors.New("give on or off")
}

// setRecordFields reads "field=path, …".
func setRecordFields(c *Config, v string) error {
	if more, ok := strings.CutPrefix(v, "+"); ok {
		v = defaultRecordFields + "," + more
	}
	for item := range strings.SplitSeq(v, ",") {
		name, path, ok := strings.Cut(strings.TrimSpace(item), "=")
		if name == "" && !ok {
			continue
		}
		f, ok := parsers.FieldByName(strings.TrimSpace(name))
		if !ok || !labelField(f) || f == parsers.EventName || f == parsers.Component {
			return fmt.Errorf("%q is no event field that a record can tell: give one of the event reference, such as pod=kubernetes.pod_name", name)
		}
		if path = recordPath(path); path == "" {
			return fmt.Errorf("%q names no record key: give field=key, such as pod=kubernetes.pod_name", item)
		}
		c.RecordFields = append(c.RecordFields, RecordField{f, path})
	}
	return nil
}

// defaultRecordFields are those of Fluent Bit's kubernetes filter.
const defaultRecordFields = "namespace=kubernetes.namespace_name,pod=kubernetes.pod_name," +
	"container=kubernetes.container_name,node=kubernetes.host"

// recordPath reads a path with dots, or one of Fluent Bit's record accessors:
// $kubernetes['labels']['app'].
func recordPath(v string) string {
	v = strings.TrimPrefix(strings.TrimSpace(v), "$")
	return strings.NewReplacer("['", ".", "']", "").Replace(v)
}

// setJSONKeys reads "part=key, …".
func setJSONKeys(c *Config, v string) error {
	c.JSONKeys = layout.DefaultKeys()
	for item := range strings.SplitSeq(v, ",") {
		part, path, ok := strings.Cut(strings.TrimSpace(item), "=")
		if part == "" && !ok {
			continue
		}
		if path = recordPath(path); path == "" {
			return fmt.Errorf("%q names no key: give part=key, such as message=text", item)
		}
		if !c.JSONKeys.Add(strings.TrimSpace(part), path) {
			return fmt.Errorf("%q is no part of a line; allowed are %s", part, strings.Join(layout.PartNames, ", "))
		}
	}
	return nil
}

func setMetrics(c *Config, v string) error {
	c.Metrics = nil
	if v != "" {
		c.Metrics = strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' })
	}
	return parsers.CheckMetrics(c.Metrics)
}

func setNode(c *Config, v string) (err error) {
	c.NodeIsSet = v != ""
	if v == "" {
		if v, err = os.Hostname(); err != nil {
			return fmt.Errorf("the host's name is not known (%w): set it", err)
		}
	}
	c.Node = v
	return nil
}

func setTimezone(c *Config, v string) (err error) {
	c.LearnZone = strings.EqualFold(v, "auto")
	if v == "" || c.LearnZone {
		c.Location = time.Local
		return nil
	}
	if c.Location, err = time.LoadLocation(v); err != nil {
		return errors.New("no such zone: give an IANA name like UTC or Europe/Berlin, or auto")
	}
	return nil
}

func setTimeout(c *Config, v string) (err error) {
	if c.Timeout, err = time.ParseDuration(v); err != nil {
		c.Timeout, err = time.ParseDuration(v + "s") // Fluent Bit's own times are in seconds
	}
	if err != nil || c.Timeout < minTimeout {
		return errors.New("give a duration like 4s, of 50ms or more")
	}
	return nil
}

// minTimeout is less than what a push takes that is worth while.
const minTimeout = 50 * time.Millisecond

func setTenant(c *Config, v string) error {
	if c.TenantID = v; !loki.IsTenant(v) {
		return fmt.Errorf("loki takes no such tenant: give %d bytes at most, of letters, digits and !-_.*'()", loki.MaxTenant)
	}
	return nil
}

// cleanPath returns a path as all outputs write it that mean the same.
func cleanPath(v string) (string, error) {
	if v == "" {
		return "", nil
	}
	return filepath.Abs(v)
}

func setDeadLetterSize(c *Config, v string) error {
	size, err := humanize.ParseBytes(v)
	if err != nil || size == 0 || size > math.MaxInt64 {
		return errors.New("give a size like 64MB")
	}
	c.DeadLetterSize = int64(size)
	return nil
}

func setMaxProcs(c *Config, v string) (err error) {
	if c.MaxProcs, err = strconv.Atoi(v); err != nil || c.MaxProcs <= 0 {
		return errors.New("give a number above 0")
	}
	return nil
}

func setMemoryLimit(c *Config, v string) error {
	size, err := humanize.ParseBytes(v)
	if err != nil || size < minMemoryLimit || size > math.MaxInt64 {
		return errors.New("give a size of 64MB or more")
	}
	c.MemoryLimit = int64(size)
	return nil
}

// minMemoryLimit is what the state may take, and as much again for a chunk.
const minMemoryLimit = 64e6

func setLogLevel(c *Config, v string) error {
	if err := c.LogLevel.UnmarshalText([]byte(v)); err != nil || !slices.Contains(logLevels, c.LogLevel) {
		return errors.New("give error, warn, info or debug")
	}
	return nil
}

var logLevels = []slog.Level{slog.LevelError, slog.LevelWarn, slog.LevelInfo, slog.LevelDebug}
