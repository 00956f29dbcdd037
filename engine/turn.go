package engine

// Turn is a decision in the making.
type Turn struct{}
