package fakeloki

import (
	"strconv"
	"time"
)

// Limits are Loki's, under the names of its limits_config where it has one. A limit of 0 is none.
type Limits struct {
	MaxBodyBytes    int // as sent; more gets 413 (distributor.max_recv_msg_size)
	MaxDecodedBytes int // decompressed; more gets 400 (distributor.max_decompressed_size)
	// MaxForwardBytes is what a distributor can hand to an ingester, in bytes of uncompressed protobuf;
	// more gets 500, and will get it again (server.grpc_server_max_recv_msg_size).
	MaxForwardBytes int

	Window time.Duration // how far an entry may be behind its stream's newest: half of max_chunk_age
	// CreationGracePeriod is how far ahead of now an entry may be.
	CreationGracePeriod time.Duration
	// RejectOlderThan is reject_old_samples_max_age. Loki's default is a week; here it is off, because
	// logs of past years are test data.
	RejectOlderThan time.Duration
	// SchemaFrom is the start of Loki's first schema period. A stream that begins before it gets 500.
	SchemaFrom time.Time

	MaxLineBytes           int  // max_line_size
	MaxLabels              int  // max_label_names_per_series
	MaxLabelNameBytes      int  // max_label_name_length
	MaxLabelValueBytes     int  // max_label_value_length
	MaxMetadataBytes       int  // max_structured_metadata_size, names and values of one entry
	MaxMetadataEntries     int  // max_structured_metadata_entries_count
	MaxStreams             int  // max_global_streams_per_user
	MaxReturnedErrors      int  // refused entries that an ingester's answer names
	TenantRate             int  // bytes a second of lines and metadata (ingestion_rate_mb)
	TenantBurst            int  // bytes (ingestion_burst_size_mb)
	PerStreamRate          int  // bytes a second (per_stream_rate_limit)
	PerStreamBurst         int  // bytes (per_stream_rate_limit_burst)
	PerStreamSingleEntries bool // shard_streams off: over a stream's rate, entries that fit are stored
}

// DefaultLimits are those of Loki 3.7.6, but for RejectOlderThan.
func DefaultLimits() Limits {
	return Limits{
		MaxBodyBytes:        100 << 20,
		MaxDecodedBytes:     5000 << 20,
		MaxForwardBytes:     4 << 20,
		Window:              time.Hour,
		CreationGracePeriod: 10 * time.Minute,
		SchemaFrom:          time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC),
		MaxLineBytes:        256 << 10,
		MaxLabels:           15,
		MaxLabelNameBytes:   1024,
		MaxLabelValueBytes:  2048,
		MaxMetadataBytes:    64 << 10,
		MaxMetadataEntries:  128,
		MaxStreams:          5000,
		MaxReturnedErrors:   10,
		TenantRate:          4 << 20,
		TenantBurst:         6 << 20,
		PerStreamRate:       3 << 20,
		PerStreamBurst:      15 << 20,
	}
}

// over says whether n is beyond a limit that is set.
func over(n, limit int) bool { return limit > 0 && n > limit }

// bucket is a token bucket of bytes. It begins full.
type bucket struct {
	rate, burst float64
	tokens      float64
	last        time.Time
}

func newBucket(rate, burst int, now time.Time) bucket {
	return bucket{rate: float64(rate), burst: float64(burst), tokens: float64(burst), last: now}
}

// take takes n tokens, all or none. A rate of 0 is no limit.
func (b *bucket) take(n int, now time.Time) bool {
	if b.rate == 0 {
		return true
	}
	if d := now.Sub(b.last); d > 0 {
		b.tokens = min(b.burst, b.tokens+b.rate*d.Seconds())
		b.last = now
	}
	if float64(n) > b.tokens {
		return false
	}
	b.tokens -= float64(n)
	return true
}

// byteSize prints bytes as Loki's limits do: 100B, 1KB, 3MB.
func byteSize(n int) string {
	f := float64(n)
	for _, unit := range []string{"B", "KB", "MB", "GB"} {
		if f < 1024 || unit == "GB" {
			return strconv.FormatFloat(f, 'g', 4, 64) + unit
		}
		f /= 1024
	}
	return ""
}
