package main

import (
	"maps"
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/logs"
	"github.com/grafana/grafana-foundation-sdk/go/loki"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// The unique ids of the dashboards, by which they link to each other.
const (
	fleetUID   = "flink-loki-fleet"
	jobUID     = "flink-loki-job"
	rocksDBUID = "flink-loki-rocksdb"
)

// Units as Grafana calls them.
const (
	count  = "short"
	millis = "ms"
	size   = "bytes"
)

func source() common.DataSourceRef {
	return common.DataSourceRef{Type: cog.ToPtr("loki"), Uid: cog.ToPtr("$datasource")}
}

// newDashboard returns a dashboard with what all of them have: the data source, the cluster, and links to the others.
func newDashboard(uid, title, description string) *dashboard.DashboardBuilder {
	all := dashboard.VariableOption{
		Text:  dashboard.StringOrArrayOfString{String: cog.ToPtr("All")},
		Value: dashboard.StringOrArrayOfString{String: cog.ToPtr("$__all")},
	}
	clusters := map[string]any{"type": 1, "label": "cluster", "stream": "", "refId": "cluster"} // 1: the values of a label
	return dashboard.NewDashboardBuilder(title).
		Uid(uid).
		Description(description).
		Tags([]string{"flink", "flink-loki"}).
		Time("now-3h", "now").
		Refresh("1m").
		Timezone(common.TimeZoneBrowser).
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Link(dashboard.NewDashboardLinkBuilder("Flink").Type(dashboard.DashboardLinkTypeDashboards).
			Tags([]string{"flink-loki"}).IncludeVars(true).KeepTime(true)).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Loki").Type("loki")).
		// A cluster is a static label (option labels). Without one, All is what there is.
		WithVariable(dashboard.NewQueryVariableBuilder("cluster").Label("Cluster").Datasource(source()).
			Query(dashboard.StringOrMap{Map: clusters}).Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
			IncludeAll(true).AllValue(".*").Current(all))
}

// withJob adds the job: Loki's variables know stream labels only, which a job's id is none of, so it is a text.
func withJob(b *dashboard.DashboardBuilder) *dashboard.DashboardBuilder {
	return b.WithVariable(dashboard.NewTextBoxVariableBuilder("job").Label("Job (id or name, a regular expression)").
		DefaultValue(dashboard.StringOrMap{String: cog.ToPtr(".*")}))
}

// query is a query over the time range, an instant one its result at the end of the range.
func query(expr, legend string, instant bool) *loki.DataqueryBuilder {
	q := loki.NewDataqueryBuilder().RefId("A").Expr(expr).LegendFormat(legend)
	if instant {
		return q.QueryType("instant").Instant(true).Range(false)
	}
	return q.QueryType("range").Instant(false).Range(true)
}

// series shows numbers over time: the query has [$__interval].
func series(title, description, unit, expr, legend string) *timeseries.PanelBuilder {
	return timeseries.NewPanelBuilder().Title(title).Description(description).Datasource(source()).
		Interval("1m").Unit(unit).Min(0).Span(12).Height(8).
		DrawStyle(common.GraphDrawStylePoints).PointSize(6).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).ShowLegend(true)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)).
		WithTarget(query(expr, legend, false))
}

// bars shows how many there were over time.
func bars(title, description, expr, legend string) *timeseries.PanelBuilder {
	return series(title, description, count, expr, legend).
		DrawStyle(common.GraphDrawStyleBars).FillOpacity(80).Decimals(0).
		Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal))
}

// number shows one number of the whole range: the query has [$__range].
func number(title, description, unit, expr string) *stat.PanelBuilder {
	return stat.NewPanelBuilder().Title(title).Description(description).Datasource(source()).
		Unit(unit).NoValue("0").Span(6).Height(4).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})).
		GraphMode(common.BigValueGraphModeNone).ColorMode(common.BigValueColorModeNone).
		WithTarget(query(expr, "", true))
}

// longest shows the longest duration of the whole range, where there is any.
func longest(title, expr string) *stat.PanelBuilder {
	return number(title, "", millis, expr).NoValue("–")
}

// widths are those of columns whose texts are short, in pixels: the others share what is left, 150 each at least.
var widths = map[string]int{
	"cluster": 120, "failure_cause": 110, "job_id": 230, "subtask_index": 120, "failures_in_a_row": 140,
	"last_completed_checkpoint_id": 230, "event": 180, "failure_reason": 220, "stall_cause": 210, "operator_name": 190,
}

func width(pixels int) []dashboard.DynamicConfigValue {
	return []dashboard.DynamicConfigValue{{Id: "custom.width", Value: pixels}}
}

// ranking shows a row for each series of the whole range, the largest first. The labels
// are its columns.
func ranking(title, description, unit, value, expr string) *table.PanelBuilder {
	b := table.NewPanelBuilder().Title(title).Description(description).Datasource(source()).
		Span(12).Height(9).
		WithTarget(query(expr, "", true)).
		WithTransformation(dashboard.DataTransformerConfig{Id: "labelsToFields", Options: map[string]any{"mode": "columns"}}).
		WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}}).
		WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
			"excludeByName": map[string]any{"Time": true},
			"renameByName":  map[string]any{"Value #A": value, "Value": value},
		}}).
		SortBy([]cog.Builder[common.TableSortByFieldState]{common.NewTableSortByFieldStateBuilder().DisplayName(value).Desc(true)}).
		OverrideByName(value, []dashboard.DynamicConfigValue{{Id: "unit", Value: unit}}).
		OverrideByName(value, width(140)).
		OverrideByName("job_id", []dashboard.DynamicConfigValue{{Id: "links", Value: []any{map[string]any{
			"title": "This job", "url": "/d/" + jobUID + "?var-job=${__value.text}&${datasource:queryparam}&${cluster:queryparam}&${__url_time_range}",
		}}}})
	for _, column := range slices.Sorted(maps.Keys(widths)) {
		b.OverrideByName(column, width(widths[column]))
	}
	return b
}

// lines shows log lines.
func lines(title, description, expr string) *logs.PanelBuilder {
	return logs.NewPanelBuilder().Title(title).Description(description).Datasource(source()).
		Span(24).Height(12).ShowTime(true).WrapLogMessage(true).EnableLogDetails(true).
		SortOrder(common.LogsSortOrderDescending).
		WithTarget(query(expr, "", false))
}

func row(title string) *dashboard.RowBuilder { return dashboard.NewRowBuilder(title) }
