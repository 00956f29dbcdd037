package oracle

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/sql/steps"
)

// CheckStep looks at a step of a document that is published: see
// definition.Catalogue.CheckSteps. Of a procedure the dictionary says what it takes, as
// the user of the nodes sees it.
func CheckStep(s *Store) definition.StepCheck {
	return func(ctx context.Context, step definition.Step) (wrong, doubtful []problem.Place, err error) {
		use := steps.Use(step)
		kind, name, _ := strings.Cut(use.Target, "/")
		if wrong = s.o.Steps.Check(use); len(wrong) > 0 || kind != steps.KindPLSQL {
			return wrong, nil, nil
		}
		found, err := dictionary{s.db, s.schema}.resolve(ctx, name)
		switch {
		case err != nil:
			return nil, nil, explain(err)
		case found.link != "":
			return nil, []problem.Place{{Pointer: "/procedure", Code: "warning.unchecked-step",
				Detail: fmt.Sprintf("%s is in another database, %s: its arguments are found out about by its first call", name, found.link)}}, nil
		case len(found.signatures) == 0:
			hint := "create it, and grant EXECUTE on it to the user of the nodes"
			if len(found.others) > 0 {
				hint = steps.Choice(name[strings.LastIndexByte(name, '.')+1:], found.others)
			}
			return []problem.Place{{Pointer: "/procedure", Code: "step.unknown", Detail: "the database has no procedure " + clip(name) + " that a node may execute", Hint: hint}}, nil, nil
		}
		return use.Fits(found.signatures), nil, nil
	}
}

// dictionary reads what a user sees of the database's objects.
type dictionary struct {
	db     *sql.DB
	schema string // in which a session looks names up
}

// resolved is what a name of a procedure stands for.
type resolved struct {
	signatures []steps.Signature
	others     []string // what else is in the package
	link       string   // of the database that has it
}

// synonymsMax bounds how many synonyms lead to one object.
const synonymsMax = 8

// resolve finds a procedure as PL/SQL does: an object of the schema, a synonym, a public
// synonym, and else an owner.
func (d dictionary) resolve(ctx context.Context, name string) (resolved, error) {
	const public = "PUBLIC"
	type place struct{ owner, object string }
	parts := strings.Split(name, ".")
	member := parts[len(parts)-1]
	var places []place
	switch len(parts) {
	case 3:
		places = []place{{parts[0], parts[1]}}
	case 2:
		places = []place{{d.schema, parts[0]}, {public, parts[0]}, {parts[0], member}}
	default:
		places = []place{{d.schema, member}, {public, member}}
	}
	for i, at := range places {
		packaged := len(parts) == 3 || len(parts) == 2 && i < 2
		for range synonymsMax {
			found, there, err := d.object(ctx, at.owner, at.object, member, packaged)
			if err != nil || there {
				return found, err
			}
			var owner, link sql.NullString
			err = d.db.QueryRowContext(ctx, text("step_synonym"), at.owner, at.object).Scan(&owner, &at.object, &link)
			if err == sql.ErrNoRows {
				break
			}
			if err != nil || link.String != "" {
				return resolved{link: link.String}, err
			}
			at.owner = owner.String
		}
	}
	return resolved{}, nil
}

// object reads the subprograms of an object; there is false when it is no package and no
// procedure.
func (d dictionary) object(ctx context.Context, owner, object, member string, packaged bool) (found resolved, there bool, err error) {
	rows, err := d.db.QueryContext(ctx, text("step_arguments"), owner, object)
	if err != nil {
		return found, false, err
	}
	defer rows.Close()
	last := int64(-1)
	for rows.Next() {
		var typ string
		var subprogram int64
		var of, name, mode, data, defaulted sql.NullString
		var position sql.NullInt64
		if err := rows.Scan(&typ, &of, &subprogram, &name, &position, &mode, &data, &defaulted); err != nil {
			return found, false, err
		}
		there = true
		if (typ == "PACKAGE") != packaged || packaged && of.String != member {
			if packaged && of.String != "" && !slices.Contains(found.others, of.String) {
				found.others = append(found.others, of.String)
			}
			continue
		}
		if subprogram != last {
			last = subprogram
			found.signatures = append(found.signatures, steps.Signature{Function: typ == "FUNCTION"})
		}
		s := &found.signatures[len(found.signatures)-1]
		switch {
		case name.String != "":
			s.Params = append(s.Params, steps.Parameter{Name: name.String, Mode: mode.String, Type: data.String, Optional: defaulted.String == "Y"})
		case position.Valid && position.Int64 == 0 && data.String != "":
			s.Function = true // what it returns
		}
	}
	return found, there, rows.Err()
}
