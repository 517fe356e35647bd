// Package ruletest tests alert rules of Loki's ruler on raw log lines, in promtool's words.
//
//	rule_files: [../*.yaml]           # relative to this file
//	evaluation_interval: 1m           # of groups that have none of their own
//	tests:
//	  - name: a checkpoint expires
//	    input_logs:
//	      - file: jobmanager.log      # or several, by a pattern; .gz too
//	        labels: {cluster: prod}   # the plug-in's option labels
//	      - name: taskmanager.log     # what the lines' file is called
//	        time_offset: 5m           # how much later than they say
//	        lines: |
//	          2026-11-29 13:30:23,870 INFO  org.apache.flink. …
//	    alert_rule_test:
//	      - alertname: CheckpointExpired
//	        eval_time: 2m             # since the start
//	        exp_alerts:               # none: it must not fire
//	          - exp_labels: {severity: ticket, checkpoint_id: "3"}
//	            exp_annotations: {summary: Checkpoint 3 expired}
//	    logql_expr_test:
//	      - expr: sum(count_over_time({event="checkpoint_expired"}[5m]))
//	        eval_time: 2m
//	        exp_samples: [{labels: {}, value: 1}]
//
// The lines, whose times are taken as UTC, go through the plug-in's own parser, enrichment and
// placement into a Loki, moved to the present. The logs of one test are read as one, in the order of their times. A test's start is the
// minute of its first event, unless it says start. The clock steps by the interval of each rule's
// group; for and keep_firing_for are honoured, and exp_alerts are those that fire. Labels are
// compared as a whole, the alert's name aside; of annotations those that are expected.
//
// Rules are evaluated by queries, not by the ruler. A Loki that has a query frontend before it cuts a
// query into parts, and the limit of series (max_query_series) then holds for each of them, which in
// the ruler it does not.
//
// A test sees its own lines only: those of other tests are another tenant's, or have another value of
// a label that is added to its streams and to the selectors of its queries.
package ruletest
