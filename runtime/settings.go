package runtime

import (
	"cmp"
	"strconv"
	"time"

	"github.com/aqueduct-engine/aqueduct/duration"
)

// Settings are those of a node that the others on its database must have, too, by the
// names that the settings of engine-node have: where nodes differ in one of them, work is
// lost, given up early, or told of by some nodes alone. A program that embeds a node
// gives them to [github.com/aqueduct-engine/aqueduct/settings.Book.Join], with those of
// its Performer, before it calls New.
func (c *Config) Settings() map[string]string {
	age := func(d, standard time.Duration) string { return duration.Text(max(0, cmp.Or(d, standard))) }
	s := map[string]string{
		"events.lifecycle": strconv.FormatBool(c.Lifecycle), "events.dead-letters": strconv.FormatBool(c.DeadLetterEvents), "events.ttl": duration.Text(c.EventTTL),
		"queue.notices": age(c.NoticeKeep, DefaultNoticeKeep), "ack.age": age(c.AckAge, DefaultAckAge), "activity.give-up-after": age(c.GiveUpAfter, DefaultGiveUpAfter),
	}
	if c.RetentionKeep == 0 && c.Windows == (Windows{}) {
		return s // who deletes nothing may be beside those who do
	}
	s["retention.keep"], s["retention.faulted"] = duration.Text(c.RetentionKeep), duration.Text(c.Windows.Faulted)
	s["retention.dead-letters"], s["retention.tokens"], s["retention.policies"] = duration.Text(c.Windows.DeadLetters), duration.Text(c.Windows.Tokens), duration.Text(c.Windows.Policies)
	return s
}
