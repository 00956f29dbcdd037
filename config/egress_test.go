package config

import (
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// lists are the settings that say where requests may go.
var lists = []string{"egress.allow", "egress.deny", "egress.fetch-allow", "egress.fetch-deny"}

// A rule that would fit nothing, or something else than it says, is told where
// it stands.
func TestRulesOfEgress(t *testing.T) {
	t.Parallel()
	good := "10.0.0.0/8, 192.0.2.7 ,bank.example,*.bank.example, db_1, ::1,fd00::/8,xn--bnk-pla.example"
	for _, key := range lists {
		l, err := load(t, "", nil, "--"+strings.Replace(key, ".", "-", 1), good)
		if err != nil {
			t.Fatal(key, err)
		}
		list := map[string]string{"egress.allow": l.Egress.Allow, "egress.deny": l.Egress.Deny, "egress.fetch-allow": l.Egress.FetchAllow, "egress.fetch-deny": l.Egress.FetchDeny}
		if list[key] != good || len(List(good)) != 8 {
			t.Errorf("%s: %+v", key, l.Egress)
		}
		for _, bad := range []string{
			"10.0.0.0/33", "10.0.0.256", "10.0.0", "fe80::/200", "[::1]", "1:2:3", "*", "*bank.example", "bank.*", "*.", "bank.example:443",
			"https://bank.example", "bank.example/x", "bank example", "user@bank", "-", "bank.example.", "0x7f.0.0.1", "0177.0.0.1x/8",
		} {
			flag := "--" + strings.Replace(key, ".", "-", 1)
			_, err := load(t, "", nil, flag, "bank.example,"+bad)
			if err == nil || problem.CodeOf(err) != "config.type" || !strings.Contains(err.Error(), flag+":") || !strings.Contains(err.Error(), `"`+bad+`" is no address, range or host`) {
				t.Errorf("%s: %q: %v", key, bad, err)
			}
		}
	}
}

// The same of the hosts to which secrets are bound: what is written wrongly
// binds a secret to nothing, or to everything.
func TestHostsOfSecrets(t *testing.T) {
	t.Parallel()
	l, err := load(t, "", []string{"AQUEDUCT_SECRETS_HOSTS=bank=api.bank.example, mail=*.mail.example:465,bank=[::1]:8443"})
	if err != nil {
		t.Fatal(err)
	}
	bound, err := l.Secrets.Bound()
	if err != nil || strings.Join(bound["bank"], " ") != "api.bank.example [::1]:8443" || strings.Join(bound["mail"], " ") != "*.mail.example:465" {
		t.Errorf("%v, %v", bound, err)
	}
	for _, bad := range []string{
		"bank", "=bank.example", "bank=", "bank=*", "bank=*.", "bank=*bank.example", "bank=a.*", "bank=*.*.example", "bank=https://bank.example",
		"bank=bank.example/x", "bank=user@bank.example", "bank=bank example", "bank=bank.example:", "bank=bank.example:x", "bank=bank.example:70000",
		"bank=bank.example:0", "bank=bank.example?x", "bank=::1", "bank=a=b",
	} {
		_, err := load(t, "", nil, "--secrets-hosts", "mail=mail.example,"+bad)
		if err == nil || problem.CodeOf(err) != "config.type" || !strings.Contains(err.Error(), "--secrets-hosts:") || !strings.Contains(err.Error(), `"`+bad+`" is not NAME=HOST or NAME=HOST:PORT`) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
