package enrich

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func fingerprint(i int) Fingerprint { return NewFingerprint(1, "tag", fmt.Append(nil, i)) }

func requests(texts ...string) [][]byte {
	var r [][]byte
	for _, t := range texts {
		r = append(r, []byte(t))
	}
	return r
}

func open(t *testing.T, dir string, maxBytes int64) *Journal {
	t.Helper()
	j, err := OpenJournal(dir, maxBytes)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func expect(t *testing.T, j *Journal, f Fingerprint, want [][]byte) {
	t.Helper()
	got, err := j.Get(f)
	if err != nil || !slices.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// TestJournal_pending: a chunk of a tag waits until it is delivered, or does not come any
// more; those of an earlier process wait once they come.
func TestJournal_pending(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, 1<<20)
	now := time.Now()
	j.now = func() time.Time { return now }
	expectPending := func(want bool) {
		t.Helper()
		if j.Pending(1, "tag") != want || j.Pending(2, "tag") || j.Pending(1, "other tag") {
			t.Errorf("pending is not %v", want)
		}
	}
	expectPending(false)
	a, b := fingerprint(1), fingerprint(2)
	if err := errors.Join(j.Put(a, requests("one")), j.Put(b, requests("two"))); err != nil {
		t.Fatal(err)
	}
	expectPending(true)
	j.Release(a)
	expectPending(true)
	now = now.Add(50 * time.Minute)
	expect(t, j, b, requests("two"))
	now = now.Add(50 * time.Minute)
	expectPending(true)
	now = now.Add(maxWait)
	expectPending(false)

	j = open(t, dir, 1<<20)
	expectPending(false)
	expect(t, j, b, requests("two"))
	expectPending(true)
	j.Release(b)
	expectPending(false)
}

func TestJournal(t *testing.T) {
	for name, dir := range map[string]string{"in memory": "", "on disk": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			j := open(t, dir, 1<<20)
			a, b := fingerprint(1), fingerprint(2)
			expect(t, j, a, nil)
			if err := j.Put(a, requests("one", "", "three")); err != nil {
				t.Fatal(err)
			}
			if err := j.Put(b, requests("other")); err != nil {
				t.Fatal(err)
			}
			expect(t, j, a, requests("one", "", "three"))
			j.Delivered(a, 1)
			if got, err := j.Get(a); err != nil || len(got) != 3 || string(got[0]) != "one" || got[1] != nil || string(got[2]) != "three" {
				t.Errorf("got %q, %v", got, err)
			}
			if dir != "" {
				again := open(t, dir, 1<<20)
				expect(t, again, a, requests("one", "", "three"))
				expect(t, again, b, requests("other"))
			}
			j.Release(a)
			expect(t, j, a, nil)
			expect(t, j, b, requests("other"))
			j.Release(b)
			if !j.Empty() || j.bytes != 0 {
				t.Errorf("%d bytes are left", j.bytes)
			}
			if dir != "" {
				// A process that is killed now may be given them again.
				again := open(t, dir, 1<<20)
				expect(t, again, b, requests("other"))
				for i := range maxReleased {
					f := fingerprint(100 + i)
					if err := j.Put(f, requests("more")); err != nil {
						t.Fatal(err)
					}
					j.Release(f)
				}
				expect(t, open(t, dir, 1<<20), b, nil)
				if files, _ := os.ReadDir(dir); len(files) != maxReleased {
					t.Errorf("files are left: %v", files)
				}
			}
		})
	}
}

func TestJournal_bounded(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, 25)
	for i := range 4 {
		if err := j.Put(fingerprint(i), requests("ten bytes.")); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, j, fingerprint(0), nil)
	expect(t, j, fingerprint(1), nil)
	expect(t, j, fingerprint(2), requests("ten bytes."))
	if j.Evicted() != 2 {
		t.Errorf("%d evicted", j.Evicted())
	}
	if err := j.Put(fingerprint(9), requests("one entry may be larger than the bound")); err != nil {
		t.Fatal(err)
	}
	expect(t, j, fingerprint(9), requests("one entry may be larger than the bound"))
}

// TestOpenJournal_foreignFiles: files of others stay, and those of a newer format are
// set aside when they are asked for.
func TestOpenJournal_foreignFiles(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, 1<<20)
	if err := j.Put(fingerprint(1), requests("x")); err != nil {
		t.Fatal(err)
	}
	path := j.path(fingerprint(1))
	b, _ := os.ReadFile(path)
	b[len(journalMagic)-1] = StateFormat + 1
	for name, content := range map[string][]byte{path: b, filepath.Join(dir, "README"): nil, filepath.Join(dir, "zz.chunk"): nil} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	j = open(t, dir, 1<<20)
	if _, err := j.Get(fingerprint(1)); err == nil {
		t.Error("a newer format is read")
	}
	expect(t, j, fingerprint(1), nil)
	if _, err := os.Stat(path + ".bad"); err != nil {
		t.Error(err)
	}
}

// TestPut_diskFails: the entry is kept in memory, and the error told.
func TestPut_diskFails(t *testing.T) {
	dir := t.TempDir()
	j := open(t, dir, 1<<20)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := j.Put(fingerprint(1), requests("x")); err == nil {
		t.Error("no error")
	}
	expect(t, j, fingerprint(1), requests("x"))
}

func TestNewFingerprint(t *testing.T) {
	seen := map[Fingerprint]string{}
	for _, c := range []struct {
		renderer   uint64
		tag, chunk string
	}{{1, "t", "c"}, {2, "t", "c"}, {1, "u", "c"}, {1, "t", "d"}, {1, "tc", ""}, {1, "", "tc"}} {
		f := NewFingerprint(c.renderer, c.tag, []byte(c.chunk))
		if other, ok := seen[f]; ok {
			t.Errorf("%v has the fingerprint of %s", c, other)
		}
		seen[f] = fmt.Sprint(c)
	}
}
