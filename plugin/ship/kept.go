package ship

import (
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"syscall"

	"flink-loki/plugin/enrich"
)

// maxJournalBytes bounds the requests of chunks that wait for delivery, for each
// state_path: far more than Fluent Bit keeps in memory by default.
const maxJournalBytes = 256 << 20

// kept is what the outputs of this process keep together under their state_path.
type kept struct {
	state   *enrich.State
	journal *enrich.Journal
	users   int
}

var (
	keptMu sync.Mutex
	keptBy = map[string]*kept{} // by state_path, "" in memory
)

// openKept opens what is kept under a state_path, or joins those who have it open.
func openKept(statePath string, log *slog.Logger) (*kept, error) {
	keptMu.Lock()
	defer keptMu.Unlock()
	k, ok := keptBy[statePath]
	if !ok {
		var err error
		if k, err = newKept(statePath, log); errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			log.Warn("state_path is full: what is to be kept there is in memory until the agent is started again", "state_path", statePath, "err", err)
			k, err = newKept("", log)
		}
		if err != nil {
			return nil, err
		}
		keptBy[statePath] = k
	}
	k.users++
	return k, nil
}

func newKept(statePath string, log *slog.Logger) (k *kept, err error) {
	k = &kept{}
	if statePath == "" {
		k.state = enrich.NewState(0)
		k.journal, err = enrich.OpenJournal("", maxJournalBytes)
		return k, err
	}
	note := func(text string) { log.Warn("a part of the state is lost", "reason", text) }
	state, isIntact, err := enrich.OpenState(filepath.Join(statePath, "state"), 0, note)
	if err != nil {
		return nil, err
	}
	k.state = state
	if k.journal, err = enrich.OpenJournal(filepath.Join(statePath, "journal"), maxJournalBytes); err != nil {
		return nil, errors.Join(err, state.Close())
	}
	// An entry whose pass was not saved was not sent: its chunk is rendered anew.
	k.journal.Keep(func(f enrich.Fingerprint) bool { return !isIntact || state.HasMark(f.String()) })
	return k, nil
}

// closeKept leaves what is kept under a state_path; the last one closes it.
func closeKept(statePath string) error {
	keptMu.Lock()
	defer keptMu.Unlock()
	k, ok := keptBy[statePath]
	if !ok {
		return nil
	}
	if k.users--; k.users > 0 {
		return nil
	}
	delete(keptBy, statePath)
	return k.state.Close()
}
