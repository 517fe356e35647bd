package ship

import (
	"path/filepath"
	"sync"

	"flink-loki/plugin/enrich"
)

// maxJournalBytes bounds the requests of chunks that wait for delivery, for each
// state_path: far more than Fluent Bit keeps in memory by default.
const maxJournalBytes = 256 << 20

// journals are the journals that outputs of this process share by their state_path.
var journals struct {
	sync.Mutex
	open map[string]*sharedJournal
}

type sharedJournal struct {
	*enrich.Journal
	users int
}

// openJournal opens the journal of a state_path, or joins those who have it open.
func openJournal(statePath string) (*enrich.Journal, error) {
	if statePath == "" {
		return enrich.OpenJournal("", maxJournalBytes)
	}
	journals.Lock()
	defer journals.Unlock()
	if j, ok := journals.open[statePath]; ok {
		j.users++
		return j.Journal, nil
	}
	j, err := enrich.OpenJournal(filepath.Join(statePath, "journal"), maxJournalBytes)
	if err != nil {
		return nil, err
	}
	if journals.open == nil {
		journals.open = map[string]*sharedJournal{}
	}
	journals.open[statePath] = &sharedJournal{Journal: j, users: 1}
	return j, nil
}

func closeJournal(statePath string) {
	journals.Lock()
	defer journals.Unlock()
	if j, ok := journals.open[statePath]; ok {
		if j.users--; j.users == 0 {
			delete(journals.open, statePath)
		}
	}
}
