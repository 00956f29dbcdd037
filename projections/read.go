package projections

// EntryRow is an entry of a stream with its checksum.
type EntryRow struct {
	Sum       int64 `db:"CHECKSUM"`
	Elsewhere bool  `db:"ELSEWHERE"` // the snapshot has the data
	Entry
}

// Verify says what ails the row.
func (e *EntryRow) Verify() error {
	if e.Elsewhere {
		return e.Check(nil, e.Sum)
	}
	return e.Check(e.Data, e.Sum)
}

// Item is what the row shows.
func (e EntryRow) Item() Entry { return e.Entry }

// Bounded gives a list its limit.
func Bounded(limit int) int {
	if limit <= 0 {
		return DefaultLimit
	}
	return min(limit, MaxLimit)
}

// Items are what rows show.
func Items[R, T any](list []R, item func(R) T) []T {
	items := make([]T, len(list))
	for i, r := range list {
		items[i] = item(r)
	}
	return items
}
