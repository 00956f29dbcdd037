package oracle

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Changes that wait for a writer are written together when they have the same
// statements: in one block, with one commit. Each guards its own rows; when the block is
// refused it has written nothing, and each of them is written alone.

// groupMax is how many changes one block holds. It has as many or half as many: with each
// number the database parses another text.
const groupMax = 4

// group has the changes that wait for a writer, in the order in which they came.
type group struct {
	mu      sync.Mutex
	waiting []*waiter
}

// waiter is a change that another may write.
type waiter struct {
	work  *work
	all   *whole
	ended chan error // its end, or errAlone
}

// errAlone says that a change is to be written by whoever brought it.
var errAlone = errors.New("a change is to be written alone")

// join waits for a writer's place, or for the end of a change that another has
// written. With errAlone the caller has a place.
func (g *group) join(ctx context.Context, s *Store, p *waiter) error {
	select {
	case s.writers <- struct{}{}:
		return errAlone
	default:
	}
	g.mu.Lock()
	g.waiting = append(g.waiting, p)
	g.mu.Unlock()
	select {
	case s.writers <- struct{}{}:
		if g.leave(p) {
			return errAlone
		}
		<-s.writers
	case <-ctx.Done():
		if g.leave(p) {
			return ctx.Err()
		}
	case err := <-p.ended:
		return g.alone(ctx, s, err)
	}
	return g.alone(ctx, s, <-p.ended) // another is at it
}

// alone takes a writer's place for a change that could not be written with others.
func (g *group) alone(ctx context.Context, s *Store, err error) error {
	if !errors.Is(err, errAlone) {
		return err
	}
	select {
	case s.writers <- struct{}{}:
		return errAlone
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave takes a change back; false means that somebody has taken it.
func (g *group) leave(p *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting, p)
	if i < 0 {
		return false
	}
	g.waiting = slices.Delete(g.waiting, i, i+1)
	return true
}

// take removes those that are written together with a change.
func (g *group) take(text string) (list []*waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.waiting {
		if p.all.text == text && len(list) < groupMax-1 {
			list = append(list, p)
		}
	}
	if len(list) < groupMax-1 {
		list = list[:min(len(list), groupMax/2-1)]
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(p *waiter) bool { return slices.Contains(list, p) })
	return list
}

// together writes a change in one block, with those that wait; errAlone says that it is
// still to be written. The caller has a writer's place.
func together(ctx context.Context, s *Store, p *waiter) error {
	others := s.group.take(p.all.text)
	if len(others) == 0 {
		return errAlone
	}
	joint := *p.work
	joint.ops, joint.sends = slices.Clone(joint.ops), slices.Clone(joint.sends)
	for _, o := range others {
		joint.ops, joint.sends = append(joint.ops, o.work.ops...), append(joint.sends, o.work.sends...)
	}
	err := errAlone
	if all := blockOfWork(&joint); all != nil {
		err = changeOnce(context.WithoutCancel(ctx), s, all, func(*aq.Session) error { return errAlone })
	}
	if err != nil && !errors.Is(err, store.ErrUnknown) {
		err = errAlone
	}
	for _, o := range others {
		o.ended <- err
	}
	return err
}
