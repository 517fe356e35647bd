package parsers

// Classes of lines that teach.
var (
	environment = class(jobManager,
		"org.apache.flink.runtime.entrypoint.ClusterEntrypoint",
		"org.apache.flink.runtime.jobmanager.JobManager")
	runner = class(taskManager,
		"org.apache.flink.runtime.taskexecutor.TaskManagerRunner",
		"org.apache.flink.kubernetes.taskmanager.KubernetesTaskExecutorRunner",
		"org.apache.flink.yarn.YarnTaskExecutorRunner",
		"org.apache.flink.runtime.taskmanager.TaskManager")
	configuration = class(jobManager, "org.apache.flink.configuration.GlobalConfiguration")
)

// lessons are lines that are no events, but tell what other lines leave open. They go to
// [Source.Lesson].
var lessons = []Kind{
	{
		Name: "slot_requested",
		Doc:  "A slot, which tasks name by its allocation, is for this job.",
		Forms: []Form{
			{Versions: "1.5-2.3", By: by(taskExecutor),
				Text: "Receive slot request {allocation_id} for job {job_id} from resource manager with leader id {}."},
		},
	},
	{
		Name: "job_connected",
		Doc:  "A job lives on this TaskManager.",
		Forms: []Form{
			{Versions: "1.5-2.3", By: by(taskExecutor), Text: "Establish JobManager connection for job {job_id}."},
		},
	},
	{
		Name: "job_disconnected",
		Doc:  "A job has left this TaskManager.",
		Forms: []Form{
			{Versions: "1.5-2.3", By: by(taskExecutor), Text: "Close JobManager connection for job {job_id}."},
		},
	},
	{
		Name: "taskmanager_started",
		Doc:  "The log is that of this TaskManager.",
		Forms: []Form{
			{Versions: "1.5-2.3", By: by(runner), Text: "Starting TaskManager with ResourceID: {resource}"},
		},
	},
	{
		Name: "execution_graph_created",
		Doc:  "Attempt ids that start with this graph's are of this job.",
		Forms: []Form{
			{Versions: "1.16-2.3", By: by(executionGraph), Text: "Created execution graph {graph_id} for job {job_id}."},
		},
	},
	{
		Name: "property_loaded",
		Doc:  "A property of Flink's configuration.",
		Forms: []Form{
			{Versions: "1.3-2.3", By: by(configuration), Text: "Loading configuration property: {property}, {property_value}"},
		},
	},
	{
		Name: "version_logged",
		Doc:  "Flink's version.",
		Forms: []Form{
			{Versions: "1.3-2.3", By: by(environment, runner), Text: "Starting {} (Version: {flink_version}, {}"},
		},
	},
	{
		Name: "process_ended",
		Doc:  "The process that writes the log was told to end, and its jobs do not run there any more.",
		Forms: []Form{
			{Versions: "1.3-2.3", By: by(environment), Text: "RECEIVED SIGNAL 15: SIGTERM. Shutting down as requested."},
			{Versions: "1.3-2.3", By: by(environment), Text: "RECEIVED SIGNAL 2: SIGINT. Shutting down as requested."},
			{Versions: "1.5-2.3", By: by(environment), Text: "Shutting {} down with application status {}. Diagnostics {}"},
		},
	},
}

// unrecognised is the kind of lines that a class of [Kinds] wrote and that no statement
// is known for: how a Flink that rewords a line is noticed. They go to
// [Source.Unrecognised].
var unrecognised = []Kind{{
	Name: "unrecognised", Quiet: true,
	Doc: "A class that writes events wrote a line that is not known: Flink may have reworded it.",
}}
