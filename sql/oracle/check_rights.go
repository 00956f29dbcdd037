package oracle

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// What a check says of the rights of the user that nodes have: what it
// needs and lacks, and what it has and should not.

// plain are privileges that a runtime user may have.
var plain = []string{"CREATE SESSION", "SET CONTAINER"}

// roles looks for roles that make an administrator.
func (x rightsCheck) roles() {
	rows, err := x.rows("check_roles")
	if err != nil {
		x.failed("privileges-roles", err)
		return
	}
	var bad, all, fix []string
	for _, r := range rows {
		all = append(all, r[0])
		if dangerous(r[0]) {
			bad = append(bad, r[0])
			fix = append(fix, "REVOKE "+r[0]+" FROM "+x.user)
		}
	}
	if len(bad) > 0 {
		x.wrong("privileges-roles", "as SYS: "+strings.Join(fix, "; "), "%s has %s", x.user, strings.Join(bad, ", "))
		return
	}
	x.good("privileges-roles", "%s", orNone(all))
}

func dangerous(role string) bool {
	return slices.Contains([]string{"DBA", "PDB_DBA", "CDB_DBA", "AQ_ADMINISTRATOR_ROLE", "EXECUTE_CATALOG_ROLE", "DATAPUMP_IMP_FULL_DATABASE",
		"IMP_FULL_DATABASE", "EXP_FULL_DATABASE", "DATAPUMP_EXP_FULL_DATABASE"}, role)
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return few(list)
}

// privileges looks for rights of the system. A runtime user needs one of them.
func (x rightsCheck) privileges() {
	rows, err := x.rows("check_privileges")
	if err != nil {
		x.failed("privileges-system", err)
		return
	}
	var wide, more, all []string
	for _, r := range rows {
		all = append(all, r[0])
		switch p := r[0]; {
		case strings.Contains(p, " ANY ") || slices.Contains([]string{"ALTER SYSTEM", "ALTER DATABASE", "BECOME USER", "SYSDBA"}, p):
			wide = append(wide, p)
		case x.apart() && !slices.Contains(plain, p):
			more = append(more, p)
		}
	}
	revoke := "as SYS: REVOKE " + strings.Join(append(slices.Clone(wide), more...), ", ") + " FROM " + x.user
	switch {
	case len(wide) > 0:
		x.wrong("privileges-system", revoke, "too wide: %s", few(append(wide, more...)))
	case len(more) > 0:
		x.warn("privileges-system", revoke, "a node does not need %s", few(more))
	case !slices.Contains(all, "CREATE SESSION"):
		x.warn("privileges-system", "as SYS: GRANT CREATE SESSION TO "+x.user, "CREATE SESSION is not among %s", orNone(all))
	default:
		x.good("privileges-system", "%s", few(all))
	}
}

// right is one privilege on one object.
type right struct{ schema, object, privilege string }

var (
	grantsObject = regexp.MustCompile(`^GRANT ([A-Z, ]+) ON (\S+) TO `)
	grantsQueue  = regexp.MustCompile(`GRANT_QUEUE_PRIVILEGE\(privilege => '(\w+)', queue_name => '([^']+)'`)
)

// granted lists what 50_grants.sql grants, each with its statement.
func (x rightsCheck) granted() (map[right]string, error) {
	units, err := Installation{RuntimeUser: x.user}.units()
	if err != nil {
		return nil, err
	}
	list := map[right]string{{"SYS", "DBMS_AQ", "EXECUTE"}: "as SYS: GRANT EXECUTE ON SYS.DBMS_AQ TO " + x.user}
	for _, u := range units {
		if u.script != grantsScript+".sql" {
			continue
		}
		if m := grantsObject.FindStringSubmatch(u.text); m != nil && strings.HasSuffix(u.text, " TO "+x.user) {
			for _, p := range strings.Split(m[1], ", ") {
				list[right{x.owner, m[2], p}] = fmt.Sprintf("GRANT %s ON %s.%s TO %s", p, x.owner, m[2], x.user)
			}
		}
		if m := grantsQueue.FindStringSubmatch(u.text); m != nil {
			list[right{x.owner, m[2], m[1]}] = strings.Join(strings.Fields(u.text), " ")
		}
	}
	return list, nil
}

// grants compares what the user has with what the script grants.
func (x rightsCheck) grants() {
	rows, err := x.rows("check_grants", x.owner, x.user)
	if err != nil {
		x.failed("grants", err)
		return
	}
	have := map[right]string{}
	for _, r := range rows {
		have[right{r[0], r[1], r[2]}] = r[3]
	}
	x.administrator(have)
	if !x.apart() {
		x.warn("grants", "00_users.sql as SYS, 50_grants.sql RUNTIME_USER as the owner; then store.owner and the runtime user in store.url",
			"the node runs as the owner of the schema: it could drop tables and start queues that an operator has stopped")
		return
	}
	want, err := x.granted()
	if err != nil {
		x.failed("grants", err)
		return
	}
	var lack, fix, more, revoke []string
	for r, statement := range want {
		if have[r] == "" {
			lack = append(lack, r.privilege+" on "+r.object)
			fix = append(fix, statement)
		}
	}
	for r, grantee := range have {
		if want[r] == "" && r.object != "DBMS_AQADM" {
			more = append(more, r.privilege+" on "+r.object)
			revoke = append(revoke, fmt.Sprintf("REVOKE %s ON %s.%s FROM %s", r.privilege, r.schema, r.object, grantee))
		}
	}
	x.compare("grants", "as the owner: ", len(want), lack, fix, x.wrong, "missing: ")
	x.compare("grants-beyond", "as the owner: ", len(want), more, revoke, x.warn, "a node does not need: ")
}

// compare reports a difference, or that there is none.
func (x rightsCheck) compare(check, who string, count int, names, fix []string, report func(check, fix, found string, args ...any), what string) {
	if len(names) == 0 {
		x.good(check, "as 50_grants.sql grants, %d", count)
		return
	}
	slices.Sort(names)
	slices.Sort(fix)
	statements := strings.Join(fix, "; ")
	const most = 5
	if len(fix) > most {
		statements = "50_grants.sql " + x.user + ", which begins with " + fix[0]
		if check != "grants" {
			statements = strings.Join(fix[:most], "; ") + " and so on"
		}
	}
	if strings.HasPrefix(statements, "as SYS") {
		who = ""
	}
	report(check, who+statements, "%s%s", what, few(names))
}

// administrator looks for the right to start and stop queues: with it the
// driver starts a queue again that an operator has stopped.
func (x rightsCheck) administrator(have map[right]string) {
	grantee := have[right{"SYS", "DBMS_AQADM", "EXECUTE"}]
	switch {
	case grantee == "":
		x.good("privileges-aqadm", "no EXECUTE on DBMS_AQADM")
	case !x.apart():
		x.warn("privileges-aqadm", "let nodes run as a runtime user", "the owner may execute DBMS_AQADM: the driver starts queues again that an operator has stopped")
	default:
		x.wrong("privileges-aqadm", "as SYS: REVOKE EXECUTE ON SYS.DBMS_AQADM FROM "+grantee,
			"%s may execute DBMS_AQADM through %s: the driver starts queues again that an operator has stopped", x.user, grantee)
	}
}

// possessions says what a runtime user owns: nothing, for what one owns one
// can drop.
func (x rightsCheck) possessions() {
	if !x.apart() {
		return
	}
	n, err := x.number("check_owned", x.user)
	switch {
	case err != nil:
		x.failed("privileges-objects", err)
	case n > 0:
		x.warn("privileges-objects", "SELECT OBJECT_TYPE, OBJECT_NAME FROM ALL_OBJECTS WHERE OWNER = '"+x.user+"', and drop them",
			"%s owns %d objects and should own none", x.user, n)
	default:
		x.good("privileges-objects", "%s owns nothing", x.user)
	}
}
