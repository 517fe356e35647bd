package enrich

// Size returns how many chunks are in the journal, and the bytes of their requests.
func (j *Journal) Size() (entries int, bytes int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.entries), j.bytes
}

// Size returns how many facts the state holds, and about how many bytes of memory they
// take. It waits for the present pass.
func (s *State) Size() (facts, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.facts), s.bytes
}
