package snapshot

import "slices"

// Branch returns the branch with an id, or nil.
func (s *Snapshot) Branch(id int) *Branch {
	i, ok := slices.BinarySearchFunc(s.Branches, id, func(b *Branch, id int) int { return b.ID - id })
	if !ok {
		return nil
	}
	return s.Branches[i]
}

// UnderWay lists the pointers of the frames of all branches: those of the
// youngest branch first, and of each the innermost.
func (s *Snapshot) UnderWay() []string {
	var pointers []string
	for _, b := range slices.Backward(s.Branches) {
		for _, f := range slices.Backward(b.Frames) {
			pointers = append(pointers, f.Pointer)
		}
	}
	return pointers
}

// EnterEpoch notes that the database is in another epoch than at the last turn:
// the task that the root branch is at began under the one before.
func (s *Snapshot) EnterEpoch(epoch int64) {
	if s.Epoch == epoch {
		return
	}
	if f := s.Branch(0).outermost(); f != nil && f.Epoch == 0 {
		f.Epoch = s.Epoch
	}
	s.Epoch = epoch
}

// TaskEpoch is the epoch under which the task that the root branch is at began.
func (s *Snapshot) TaskEpoch() int64 {
	if f := s.Branch(0).outermost(); f != nil && f.Epoch > 0 {
		return f.Epoch
	}
	return s.Epoch
}

// outermost is the first frame of a branch; nil = it has none, or is none.
func (b *Branch) outermost() *Frame {
	if b == nil || len(b.Frames) == 0 {
		return nil
	}
	return &b.Frames[0]
}
