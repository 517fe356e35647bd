package rules

// phrases are what several rules say alike. They may have settings in them.
var phrases = map[string]string{
	// failed selects the lines that tell of a failed checkpoint, several for one failure.
	"failed": `{event=~"checkpoint_(expired|declined|discarded|failed)"${matchers}} | logfmt | counted="true" | savepoint!="true"${jobs}`,

	// job names a job in an annotation: its name, where it is known, and its id.
	"job": `job {{ with $labels.job_name }}{{ . }} {{ end }}{{ with $labels.job_id }}({{ . }}){{ end }}{{ with $labels.cluster }} in {{ . }}{{ end }}`,

	// task names a task and its host.
	"task": `{{ with $labels.task_name }}{{ . }}{{ with $labels.subtask_index }} subtask {{ . }}{{ end }}{{ else }}a task{{ with $labels.task_attempt_id }} (attempt {{ . }}){{ end }}{{ end }}` +
		`{{ with $labels.host }} on {{ . }}{{ else }}{{ with $labels.node }} on {{ . }}{{ end }}{{ end }}`,
}
