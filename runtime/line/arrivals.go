package line

// Arrivals are messages of queues that were handed to this node in an order, and are
// read side by side: here they get into line again. Its zero value has none; it is for
// one goroutine at a time.
type Arrivals[T any] struct {
	order map[string][]string // by queue, ids of messages that have come
	read  map[string]T        // by id, those that wait for one before them
}

// Come notes that a message of a queue is about to be handed to somebody who reads it.
func (a *Arrivals[T]) Come(queue, id string) {
	if a.order == nil {
		a.order, a.read = map[string][]string{}, map[string]T{}
	}
	a.order[queue] = append(a.order[queue], id)
}

// Read says what a message is that has come, and gives next what can go on: those
// before which all have been read, in their order.
func (a *Arrivals[T]) Read(queue, id string, what T, next func(T)) {
	a.read[id] = what
	order := a.order[queue]
	for len(order) > 0 {
		what, ok := a.read[order[0]]
		if !ok {
			break
		}
		delete(a.read, order[0])
		order = order[1:]
		next(what)
	}
	a.order[queue] = order
}
