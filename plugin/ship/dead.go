package ship

import (
	"log/slog"
	"sync"
	"time"

	"flink-loki/plugin/loki"
)

// deadLetters takes what can't be delivered: into a file where there is one, else it is
// counted, and logged now and then.
type deadLetters struct {
	log  *slog.Logger
	file *loki.DeadLetters // nil for none

	mu     sync.Mutex
	count  int
	told   int
	toldAt time.Time
}

func openDeadLetters(cfg *Config, log *slog.Logger) (*deadLetters, error) {
	d := &deadLetters{log: log}
	if cfg.DeadLetterPath == "" {
		return d, nil
	}
	var err error
	d.file, err = loki.OpenDeadLetters(cfg.DeadLetterPath, cfg.DeadLetterSize)
	return d, err
}

// bury puts the entries of a request away that Loki refuses for ever.
func (d *deadLetters) bury(reason string, r *loki.Request) error {
	return d.write(loki.NewDeadLetters(time.Now(), reason, r))
}

func (d *deadLetters) write(letters []loki.DeadLetter) error {
	if d.file != nil {
		if err := d.file.Write(letters...); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count += len(letters)
	const every = time.Minute
	if now := time.Now(); now.Sub(d.toldAt) >= every {
		text := "entries are given up: without dead_letter_path they are lost"
		if d.file != nil {
			text = "entries are given up, and are in the dead-letter file"
		}
		d.log.Error(text, "entries", d.count-d.told, "reason", letters[0].Reason, "line", letters[0].Line)
		d.told, d.toldAt = d.count, now
	}
	return nil
}

func (d *deadLetters) close() error {
	if d.file == nil {
		return nil
	}
	return d.file.Close()
}
