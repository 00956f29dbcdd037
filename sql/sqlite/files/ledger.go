package files

import (
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
)

// Ledger is what a node has in hand: slots of message id and time in the node's
// own file, written to the page cache, which a killed process leaves behind.
type Ledger struct {
	file *os.File
	log  *slog.Logger

	mu    sync.Mutex
	free  []int64 // slots to use again
	slots int64
}

// Slot is where a message stands in the ledger; its zero value is nowhere.
type Slot struct{ no int64 } // from 1

const (
	slotBytes = 16
	slotsMax  = 1 << 16
)

// Enter notes a message.
func (l *Ledger) Enter(s *Slot, id, at int64) {
	l.mu.Lock()
	if s.no == 0 {
		if last := len(l.free) - 1; last >= 0 {
			s.no, l.free = l.free[last], l.free[:last]
		} else if l.slots < slotsMax {
			l.slots++
			s.no = l.slots
		}
	}
	no := s.no
	l.mu.Unlock()
	l.note(no, id, at)
}

// Exit strikes out what a slot has.
func (l *Ledger) Exit(s *Slot) {
	l.mu.Lock()
	no := s.no
	s.no = 0
	l.mu.Unlock()
	if no == 0 {
		return
	}
	l.note(no, 0, 0)
	l.mu.Lock()
	l.free = append(l.free, no)
	l.mu.Unlock()
}

func (l *Ledger) note(slot, id, at int64) {
	if slot == 0 {
		return
	}
	var b [slotBytes]byte
	binary.LittleEndian.PutUint64(b[:], uint64(id))
	binary.LittleEndian.PutUint64(b[8:], uint64(at))
	if _, err := l.file.WriteAt(b[:], (slot-1)*slotBytes); err != nil && !errors.Is(err, os.ErrClosed) {
		l.log.Warn("sqlite: ledger", "error", err)
	}
}

// EachNoted calls each for every message in the ledger of a node that has died.
// A nil file has none.
func EachNoted(ledger *os.File, each func(id, at int64) error) error {
	if ledger == nil {
		return nil
	}
	raw, err := io.ReadAll(io.NewSectionReader(ledger, 0, slotsMax*slotBytes))
	if err != nil {
		return err
	}
	for ; len(raw) >= slotBytes; raw = raw[slotBytes:] {
		id, at := int64(binary.LittleEndian.Uint64(raw)), int64(binary.LittleEndian.Uint64(raw[8:]))
		if id == 0 {
			continue
		}
		if err := each(id, at); err != nil {
			return err
		}
	}
	return nil
}
