package parsers

import (
	"bytes"

	"flink-loki/parsers/internal/ascii"
)

// causes are texts of exceptions, and of reasons, that tell more than why. What they
// tell fills what the line itself left open.
var causes = []Form{
	{ID: "exc-could-not-complete", Versions: "1.3-2.3",
		Text: "Could not complete snapshot {checkpoint_id} for operator {task}. Failure reason: {reason}"},
	{ID: "exc-could-not-complete", Versions: "1.3-2.3",
		Text: "Could not complete snapshot {checkpoint_id} for operator {task}."},
	{ID: "exc-checkpoint-aborted-flush", Versions: "1.3-2.3",
		Text: "Could not materialize checkpoint {checkpoint_id} for operator {task}."},
	{ID: "exc-could-not-perform", Versions: "1.3-2.3",
		Text: "Could not perform checkpoint {checkpoint_id} for operator {task}."},
	{ID: "exc-not-all-running", Versions: "1.13-2.3",
		Text: "Checkpoint triggering task {task} of job {job_id} is not being executed at the moment. Aborting checkpoint. Failure reason: {reason}"},
	{ID: "exc-not-all-running", Versions: "1.13-2.3",
		Text: "task {task} of job {job_id} is not being executed at the moment. Aborting checkpoint. Failure reason: {reason}"},
	{ID: "exc-finished-tasks", Versions: "1.14-2.3",
		Text: "Some tasks of the job have already finished and checkpointing with finished tasks is not enabled. Failure reason: {reason}"},
	{ID: "exc-decline-1.8", Versions: "1.3-1.8",
		Text: "Checkpoint was canceled because a barrier from newer checkpoint {new_checkpoint_id} was received."},
	{ID: "exc-trigger-error", Versions: "1.3-2.3",
		Text: "Error while triggering checkpoint {checkpoint_id} for {task}"},
}

// serializedThrowable stands in place of an exception whose class the reader may not
// have. Its words are those of the exception alone up to Flink 1.15, and from 1.16 on
// (before that in some causes) "class: words".
const serializedThrowable = "org.apache.flink.util.SerializedThrowable"

// cutException splits "package.Class: words" as Throwable.toString writes it. A text
// that names no class is all words.
func cutException(v []byte) (class, words []byte) {
	n := ascii.Span(v, ascii.IsName)
	class, words = v[:n], v[n:]
	dot := bytes.LastIndexByte(class, '.')
	if dot < 1 || dot+1 == n || class[dot+1] < 'A' || class[dot+1] > 'Z' || len(words) > 0 && words[0] != ':' {
		return nil, v
	}
	words = bytes.TrimSpace(bytes.TrimPrefix(words, []byte(":")))
	if string(words) == "null" { // an exception that was made without words
		words = nil
	}
	if string(class) == serializedThrowable {
		if inner, rest := cutException(words); inner != nil {
			return inner, rest
		}
	}
	return class, words
}

// cutReason returns Flink's own reason where an exception's text has one behind what
// happened: "… Failure reason: Checkpoint was declined."
func cutReason(words []byte) []byte {
	if _, reason, ok := bytes.Cut(words, []byte("Failure reason: ")); ok && len(reason) > 0 {
		return reason
	}
	return words
}

// trace gathers what the lines below a header tell. The zero trace is empty.
type trace struct {
	class []byte // of the first exception
	words []byte // of the first exception
	root  []byte // class of the last cause that names one
	// suppressed is the indent of the "Suppressed:" block that is being read; its
	// causes are not this exception's.
	suppressed int
	inBlock    bool
}

type exception struct{ class, words []byte }

// add reads one line below a header. It returns what the line says about an
// exception: ok is false for a frame and for any other line.
func (t *trace) add(line []byte) (ex exception, ok bool) {
	indent := ascii.Span(line, ascii.IsBlank)
	text := bytes.TrimRight(line[indent:], " \t\r")
	if indent > 0 && (bytes.HasPrefix(text, []byte("at ")) || bytes.HasPrefix(text, []byte("... "))) {
		return ex, false
	}
	if t.inBlock && indent > t.suppressed {
		return ex, false
	}
	t.inBlock = false
	if bytes.HasPrefix(text, []byte("Suppressed: ")) {
		t.inBlock, t.suppressed = true, indent
		return ex, false
	}
	cause, isCause := bytes.CutPrefix(text, []byte("Caused by: "))
	if !isCause && t.class != nil {
		return ex, false // a further line of the exception's words
	}
	ex.class, ex.words = cutException(cause)
	if ex.class == nil {
		return ex, false
	}
	first := t.class == nil
	if first {
		t.class = ex.class
	}
	// An ExecutionException and its like repeat their cause: "class: class: words".
	root, words := ex.class, ex.words
	for {
		inner, rest := cutException(words)
		if inner == nil {
			break
		}
		root, words = inner, rest
	}
	if first {
		t.words = words
	}
	if !first && (t.root == nil || string(root) != serializedThrowable) || first && !bytes.Equal(root, ex.class) {
		t.root = root
	}
	return ex, true
}
