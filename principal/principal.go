// Package principal says who acts. Whoever lets a request in puts it into the
// request's context; what the request does carries it, and asks nobody else.
package principal

import (
	"context"
	"slices"
	"strings"
)

// Kind says how it is known who acts.
type Kind string

const (
	Nobody      Kind = "nobody"      // whoever reaches the node may: nobody has asked who it is
	User        Kind = "user"        // a person, by an identity provider or by the account on the host
	Token       Kind = "token"       // who holds a token of ours
	Certificate Kind = "certificate" // who holds a certificate that an authority of ours has signed
	Node        Kind = "node"        // the program that the node is part of
)

// Via says which way somebody came.
type Via string

const (
	API     Via = "api"     // a request to a node
	Console Via = "console" // a page of a node
	CLI     Via = "cli"     // the command line, on the database itself
	Go      Via = "go"      // a program that embeds the node
)

// Principal is who acts.
type Principal struct {
	Name    string   // "" = nobody has found out
	Kind    Kind     //
	Via     Via      //
	Roles   []string // what they may do; nil where nobody asks
	Scope   []string // namespaces of definitions in which they may do what they do now; nil = all
	Types   []string // of events that they may publish, or what they begin with and a star; nil = any
	Groups  []string // of which a person is a member, as tasks name them
	Speaks  bool     // may say in whose name they act
	Claimed string   // in whose name they say they act; nobody has found out whether that is so
	Request string   // identity of the request
	Reason  string   // why they do it, in their words
}

// reserved begins names of groups that nobody is in by what is said of them: the account
// on the host, and the user of a database's session.
var reserved = []string{"os:", "db:"}

// Reserved reports whether a name of a group says how it is known who is in it.
func Reserved(group string) bool {
	return slices.ContainsFunc(reserved, func(prefix string) bool { return strings.HasPrefix(group, prefix) })
}

// Believed are the groups among those that are said of somebody which may be.
func Believed(groups []string) []string { return slices.DeleteFunc(groups, Reserved) }

// Actor is who the stream says has done it.
func (p *Principal) Actor() string {
	if p.Claimed != "" && (p.Speaks || p.Name == "") {
		return p.Claimed
	}
	return p.Name
}

type key struct{}

// With is a context in which somebody acts.
func With(ctx context.Context, p Principal) context.Context { return context.WithValue(ctx, key{}, p) }

// Of is who acts in a context; where nothing is said, the program itself.
func Of(ctx context.Context) Principal {
	if p, ok := ctx.Value(key{}).(Principal); ok {
		return p
	}
	return Principal{Kind: Node, Via: Go}
}

// In reports whether a context says who acts.
func In(ctx context.Context) bool { return ctx.Value(key{}) != nil }

type wayKey struct{}

// By is a context of requests that somebody makes this way, whoever it is.
func By(ctx context.Context, way Via) context.Context { return context.WithValue(ctx, wayKey{}, way) }

// Way is the way that requests are said to be made; otherwise, where nothing is said.
func Way(ctx context.Context, otherwise Via) Via {
	if way, ok := ctx.Value(wayKey{}).(Via); ok {
		return way
	}
	return otherwise
}
