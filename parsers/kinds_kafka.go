package parsers

// The classes of the Kafka client and of Flink's connector. KafkaConsumerThread logs as
// the fetcher that made it.
var (
	fetchSession = class(kafka, "org.apache.kafka.clients.FetchSessionHandler")
	fetcher      = class(kafka, "org.apache.kafka.clients.consumer.internals.Fetcher")
	connector    = class(kafka,
		"org.apache.flink.connector.kafka.source.reader.KafkaSourceReader",
		"org.apache.flink.streaming.connectors.kafka.internals.KafkaConsumerThread",
		"org.apache.flink.streaming.connectors.kafka.internals.KafkaFetcher",
		"org.apache.flink.streaming.connectors.kafka.internal.KafkaFetcher",
		"org.apache.flink.streaming.connectors.kafka.internal.Kafka09Fetcher",
		"org.apache.flink.streaming.connectors.kafka.FlinkKafkaConsumerBase")
)

// kafkaKinds are the events of the Kafka client inside a TaskManager.
var kafkaKinds = []Kind{
	{
		Name: "kafka_fetch_failed", Core: true,
		Doc: "A Kafka consumer could not fetch from a broker.",
		Forms: []Form{
			{ID: "kafka-fetch-error", Versions: "kafka 2.8-4.1", By: by(fetchSession),
				Text: "{kafka_client}Error sending fetch request (sessionId={session_id}, epoch={epoch}) to node {kafka_node_id}:"},
			{ID: "kafka-fetch-error", Versions: "kafka 1.1-2.5", By: by(fetchSession),
				Text: "{kafka_client}Error sending fetch request (sessionId={session_id}, epoch={epoch}) to node {kafka_node_id}: {exception}."},
			{ID: "kafka-fetch-error", Versions: "kafka 0.11", By: by(fetcher),
				Text: "{kafka_client}Fetch request {} to {kafka_node} failed"},
		},
	},
	{
		Name: "kafka_commit_failed",
		Doc:  "Committing offsets to Kafka failed; Flink's checkpoints are not harmed.",
		Forms: []Form{
			{ID: "kafka-offset-commit-failed", Versions: "1.14-2.0", By: by(connector),
				Text: "Failed to commit consumer offsets for checkpoint {checkpoint_id}"},
			{ID: "kafka-offset-commit-failed", Versions: "1.11-1.20", By: by(connector),
				Text: "Consumer subtask {subtask_index} failed async Kafka commit."},
			{ID: "kafka-offset-commit-failed", Versions: "1.9-1.20", By: by(connector),
				Text: "Committing offsets to Kafka failed. This does not compromise Flink's checkpoints."},
			{ID: "kafka-offset-commit-failed", Versions: "1.4-1.8", By: by(connector),
				Text: "Async Kafka commit failed."},
		},
	},
}
