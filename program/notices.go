package program

import "strings"

// Notices are the entries that leave as CloudEvents, unless a state says that they stay.
var Notices = []string{
	"AckDelivered", "AckFailed", "AckProcessed", "AckReminderProcessedPending", "AckRepeated", "AckRetry", "AckRetryPending", "AckSuperseded",
	"EventForbidden", entryStale,
}

// Tells says whether a notice about what is at a pointer leaves: as the state says that
// it is in, by the newest policy, and whatever policy the hooks there are of.
func (p *Program) Tells(pointer, notice string) bool {
	if hooks, ok := strings.CutPrefix(pointer, "/policy/"); ok {
		_, pointer, _ = strings.Cut(hooks, "/")
		pointer = "/" + pointer
	}
	in, ok := strings.CutPrefix(pointer, "/states/")
	if !ok {
		return true
	}
	name, _, _ := strings.Cut(in, "/")
	n := p.node("/states/" + name)
	return n == nil || n.State == nil || n.State.tells(notice)
}

func (s *State) tells(notice string) bool {
	leaves, said := s.Notices[notice]
	return leaves || !said
}
