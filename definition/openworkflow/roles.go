package openworkflow

import (
	"slices"
	"strings"
	"unicode"
)

// Limits of the roles of an event. A name has the length of that of a group.
const (
	maxRoles    = 50
	maxRoleName = 64
)

// roles takes the roles of which who triggers an event has one.
func roles(c *compiler, at string, v any) []string {
	list, ok := v.([]any)
	if !ok {
		c.wrong(at, "a list of roles", v)
		return nil
	}
	if len(list) == 0 || len(list) > maxRoles {
		c.report(at, codeMissing, "name the groups whose members may trigger it, or leave roles out", "%d roles are named, from 1 to %d may be", len(list), maxRoles)
	}
	var names []string
	for i, x := range list {
		name, ok := x.(string)
		switch {
		case !ok:
			c.wrong(item(at, i), "a string: the name of a group", x)
		case name == "" || len(name) > maxRoleName:
			c.report(item(at, i), codeType, "", "%s is no name of a role: it has from 1 to %d bytes", quoted(clip(name)), maxRoleName)
		case strings.ContainsFunc(name, unicode.IsControl):
			c.report(item(at, i), codeType, "", "%s is no name of a role: it has control characters", quoted(clip(name)))
		case slices.Contains(names, name):
			c.report(item(at, i), codeType, "", "role %s is there twice", clip(name))
		default:
			names = append(names, name)
		}
	}
	return names
}
