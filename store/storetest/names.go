package storetest

import (
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
)

// Named are entries of an instance that have names in its definition, from a position
// on: told, paid, submit, a/b, ask.
func Named(instance string, from int64, at time.Time) []projections.Entry {
	done := true
	list := []projections.Entry{
		{Kind: "command", Type: "EventEmitted", Data: []byte(`{"target":"event:publish","token":"","input":{"type":"told"}}`), Metadata: []byte(`{"ptr":"/do/1/tell"}`), Processed: &done, Key: "told"},
		{Kind: "event", Type: "ExternalSignal", Data: []byte(`{"type":"paid","data":{"type":"cash"}}`), Metadata: []byte(`{}`), SignalID: instance + "-paid"},
		{Kind: "event", Type: "StateChanged", Data: []byte(`{"from":"A","to":"B","event":"submit"}`), Metadata: []byte(`{}`)},
		{Kind: "command", Type: "Call", Data: []byte(`{"target":"http","token":""}`), Metadata: []byte(`{"ptr":"/do/0/a~1b"}`), Processed: &done, Key: "call"},
		{Kind: "event", Type: "TaskCreated", Data: []byte(`{"taskId":"t"}`), Metadata: []byte(`{"ptr":"/do/2/for/do/0/ask"}`)},
	}
	for i := range list {
		e := &list[i]
		e.InstanceID, e.Position, e.Direction, e.CreatedAt = instance, from+int64(i), "out", at
		if e.Processed != nil {
			e.ProcessedAt = at
		}
	}
	return list
}
