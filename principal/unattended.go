package principal

import "context"

type unattendedKey struct{}

// Unattended is ctx for what a program does by itself on behalf of somebody, such as a page
// that looks again: it keeps no session from being idle.
func Unattended(ctx context.Context) context.Context {
	return context.WithValue(ctx, unattendedKey{}, true)
}

// IsUnattended says that nobody does it themselves.
func IsUnattended(ctx context.Context) bool { return ctx.Value(unattendedKey{}) != nil }
