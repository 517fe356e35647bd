package parsers

import (
	"bytes"

	"flink-loki/parsers/internal/ascii"
)

// AddFileName adds what the name of a file, with its directories, tells of the lines in
// it:
//
//	…/application_1566836790522_8088/container_e24_1566836790522_8088_01_000002/taskmanager.log   YARN
//	/var/log/containers/<pod>_<namespace>_<container>-<64 hex digits>.log                          Kubernetes
//	/var/log/pods/<namespace>_<pod>_<uid>/<container>/0.log                                        Kubernetes
//	…/job_<job>_op_<operator>_<operator id>__<i>_<n>__uuid_<uuid>/db/LOG                           RocksDB
func AddFileName(e *Event, name []byte) {
	addYARNContainer(e, name)
	addPod(e, name)
	fillDatabaseIDs(e, name)
}

// addYARNContainer takes the container, whose id holds the application's
// (org.apache.hadoop.yarn.api.records.ContainerId): container_e<epoch>_<cluster
// timestamp>_<application>_<attempt>_<number>, without the epoch where it is 0. The number
// has six digits or more, which a date does not.
func addYARNContainer(e *Event, name []byte) {
	start := bytes.LastIndex(name, []byte(yarnContainer))
	if start < 0 {
		return
	}
	id := name[start:]
	parts := id[len(yarnContainer):]
	if parts = bytes.TrimPrefix(parts, []byte("e")); len(parts) < len(id)-len(yarnContainer) {
		epoch := ascii.Span(parts, ascii.IsDigit)
		if epoch == 0 || epoch == len(parts) || parts[epoch] != '_' {
			return
		}
		parts = parts[epoch+1:]
	}
	end, application := 0, 0
	for i := range 4 {
		n := ascii.Span(parts[end:], ascii.IsDigit)
		if n == 0 || i == 3 && n < 6 {
			return
		}
		end += n
		switch {
		case i == 1:
			application = end
		case i == 3:
			e.SetText(ContainerID, bytes.Clone(id[:len(id)-len(parts)+end]))
			e.SetText(ApplicationID, append([]byte("application_"), parts[:application]...))
			return
		}
		if end == len(parts) || parts[end] != '_' {
			return
		}
		end++
	}
}

const yarnContainer = "container_"

// addPod takes what the kubelet's names of log files tell: names of Kubernetes have no
// underscores.
func addPod(e *Event, name []byte) {
	if _, rest, ok := bytes.Cut(name, []byte("/log/pods/")); ok {
		dir, rest, ok1 := bytes.Cut(rest, []byte("/"))
		container, _, ok2 := bytes.Cut(rest, []byte("/"))
		parts := bytes.Split(dir, []byte("_"))
		if ok1 && ok2 && len(parts) == 3 {
			e.SetText(Namespace, parts[0])
			e.SetText(Pod, parts[1])
			e.SetText(Container, container)
		}
		return
	}
	base := name[bytes.LastIndexByte(name, '/')+1:]
	parts := bytes.Split(base, []byte("_"))
	if len(parts) != 3 {
		return
	}
	container, ok := bytes.CutSuffix(parts[2], []byte(".log"))
	const hashLen = 64
	dash := len(container) - hashLen - 1
	if !ok || dash < 1 || container[dash] != '-' || ascii.Span(container[dash+1:], ascii.IsHex) != hashLen {
		return
	}
	e.SetText(Pod, parts[0])
	e.SetText(Namespace, parts[1])
	e.SetText(Container, container[:dash])
}
