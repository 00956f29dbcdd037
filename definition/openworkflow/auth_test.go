package openworkflow

import (
	"strings"
	"testing"
)

// secured is a document with one HTTP call that has an authentication policy.
func secured(policy, rest string) string {
	return `
document: {dsl: '1.0.3', namespace: t, name: auth, version: '1.0.0'}
use:
  secrets: [store, idp]
  authentications:
    named: {basic: {username: '${ .user }', password: '${ $secrets.store.password }'}}
do:
  - ask:
      call: http
      with: {method: get, endpoint: {uri: 'https://a.example/', authentication: ` + policy + `}` + rest + `}
`
}

func TestAuthentication(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ policy, rest, auth, warned string }{
		{`{basic: {use: store}}`, ``, `"authentication":{"basic":{"use":"store"}},"method":"GET","named":["idp","store"],"origins":["https://a.example"],`, ""},
		{`{use: named}`, ``, `"authentication":{"basic":{"password":null,"username":"ann"}},"method":"GET","named":["idp","store"],"origins":["https://a.example"],"output":"content","redirect":false,` +
			`"secrets":[{"at":"/authentication/basic/password","name":"store","path":["password"]}],`, ""},
		{`{bearer: {token: '${ .token }'}}`, ``, `"authentication":{"bearer":{"token":"abc"}},`, "comes from the instance's data"},
		{`{digest: {username: u, password: p}}`, ``, `"authentication":{"digest":{"password":"p","username":"u"}},`, "stands in the document"},
		{`{oauth2: {authority: 'https://idp', grant: client_credentials, client: {id: c, secret: '${ $secrets.idp["a b"].c }'}, scopes: [x]}}`, ``,
			`"authentication":{"oauth2":{"authority":"https://idp","client":{"id":"c","secret":null},"grant":"client_credentials","scopes":["x"]}},"method":"GET","named":["idp","store"],"origins":["https://idp","https://a.example"],`, ""},
		{`{oidc: {use: idp}}`, `, headers: {A: '${ "Key " + $secrets.store.a + "!" }', B: '${ "x \($secrets.store) y" }'}, query: {q: '${ $secrets.idp }'}, body: [{b: '${$secrets.store.b}'}]`,
			`"authentication":{"oidc":{"use":"idp"}},"body":[{"b":null}],"headers":{"A":null,"B":null},`, ""},
	} {
		parsed, err := Parse("w.yaml", []byte(secured(c.policy, c.rest)))
		if err != nil {
			t.Errorf("%s: %v", c.policy, err)
			continue
		}
		got := command(t, parsed, `{"user": "ann", "token": "abc"}`)
		if !strings.HasPrefix(got, "{"+c.auth) {
			t.Errorf("%s:\n got %s\nwant %s", c.policy, got, c.auth)
		}
		warned := ""
		for _, w := range parsed.Warnings {
			warned += w.Code + " " + w.Detail
		}
		if (warned == "") != (c.warned == "") || !strings.Contains(warned, c.warned) {
			t.Errorf("%s: warnings %q", c.policy, warned)
		}
		if c.rest != "" && !strings.Contains(got, `{"after":"!","at":"/headers/A","before":"Key ","name":"store","path":["a"]}`) {
			t.Errorf("secrets: %s", got)
		}
	}
}

func TestAuthenticationFindings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ policy, rest, want string }{
		{`{use: nobody}`, ``, `unknown-reference /do/0/ask/with/endpoint/authentication/use: no authentication policy is named "nobody"`},
		{`{use: name}`, ``, `did you mean named?`},
		{`{basic: {use: stroe}}`, ``, `no secret is named "stroe" (did you mean store?)`},
		{`{basic: {username: u}}`, ``, `missing-field /do/0/ask/with/endpoint/authentication/basic: field password is missing`},
		{`{basik: {username: u}}`, ``, `did you mean basic?`},
		{`{}`, ``, `has exactly one scheme`},
		{`{bearer: {tokn: a}}`, ``, `did you mean token?`},
		{`{oauth2: {authority: a, grant: authorization_code}}`, ``, `needs a person at a browser`},
		{`{oauth2: {authority: a, grant: passwort}}`, ``, `did you mean password?`},
		{`{oauth2: {authority: a, grant: password, client: {authentication: private_key_jwt}}}`, ``, `signed assertions of clients (private_key_jwt)`},
		{`{oidc: {authority: a, grant: password, client: {assertion: x}}}`, ``, `signed assertions of clients (assertion)`},
		{`{oidc: {authority: a, grant: password, scopes: a}}`, ``, `want a list of strings`},
		{`{oidc: {authority: a, grant: password, endpoints: {token: a}}}`, ``, `"endpoints" is not known here`},
		{`{basic: {use: store}}`, `, headers: {A: '${ $secrets.store.a | ascii_upcase }'}`, `can be the secret alone`},
		{`{basic: {use: store}}`, `, headers: {A: '${ "a \(.b)" + $secrets.store.a }'}`, `is not a plain string`},
		{`{basic: {use: store}}`, `, headers: {A: '${ $secrets.nobody }'}`, `no secret is named "nobody"`},
		{`{basic: {use: store}}`, "}\n      input: {from: '${ $secrets.store }'", `unsupported /do/0/ask/input/from: $secrets cannot be used here`},
		{`{basic: {use: store}}`, "}\n      input: {from: '${ $authorization.scheme }'", `$authorization is outside the supported profile`},
	} {
		if got := findings(secured(c.policy, c.rest)); strings.Count(got, "\n") != 1 && c.policy != `{basik: {username: u}}` && c.policy != `{bearer: {tokn: a}}` || !strings.Contains(got, c.want) {
			t.Errorf("%s%s\n got %s\nwant %s", c.policy, c.rest, got, c.want)
		}
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	p, err := Parse("w.yaml", []byte(`
document: {dsl: '1.0.3', namespace: t, name: warn, version: '1.0.0'}
do:
  - a: {set: {text: 'Hello ${ .x }!', fine: '${ "Hello \\(.x)" }'}}
  - b: {listen: {to: {one: {with: {type: t}}}}}
  - c: {listen: {to: {one: {with: {type: t}, correlate: {k: {from: .k}}}}}}
  - d: {fork: {branches: [{e: {do: [{f: {set: {x: 1}, export: {as: .}}}]}}]}}
  - g: {set: {x: 1}, export: {as: .}}
  - h: {try: [{i: {call: f}}], catch: {retry: {when: '${ true }'}}}
  - j: {try: [{k: {call: f}}], catch: {retry: {delay: PT1S}}}
  - l: {try: [{m: {call: f}}], catch: {retry: {limit: {attempt: {count: 3}}}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, w := range p.Warnings {
		got += w.Pointer + " " + strings.TrimPrefix(w.Code, "warning.") + "\n"
	}
	if got != "/do/0/a/set/text embedded-expression\n/do/1/b/listen/to/one uncorrelated\n/do/3/d/fork/branches/0/e/do/0/f/export export-in-fork\n/do/5/h/catch/retry endless-retry\n" {
		t.Error(got)
	}
}

// TestSecretsAreBoundToTheHostsThatAreWrittenOut: a command with secrets names
// the origins that its definition writes out, and publishing warns where data
// makes the host.
func TestSecretsAreBoundToTheHostsThatAreWrittenOut(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"https://a.example":                      "https://a.example",
		"http://A.example:80?x=1":                "http://A.example:80",
		"https://u:p@a.example/":                 "https://a.example",
		"https://a.example/{user}/x":             "https://a.example",
		`${ "https://a.example/" + .user }`:      "https://a.example",
		`${ "https://a.example/\(.user)" }`:      "https://a.example",
		`${ "https://a.example" }`:               "https://a.example",
		"https://a.example{user}":                "",
		"https://{user}/x":                       "",
		"https://a.{user}.example/":              "",
		"${ .uri }":                              "",
		`${ "https://a.example" + .user }`:       "",
		`${ "https://a.example\(.user)/" }`:      "",
		`${ "https://a.example/" as $x | .uri }`: "https://a.example", // and the performer finds another
	} {
		source := `
document: {dsl: '1.0.3', namespace: t, name: bound, version: '1.0.0'}
use: {secrets: [s]}
do:
  - ask: {call: http, with: {method: get, endpoint: '` + uri + `', headers: {A: '${ $secrets.s }'}}}
`
		parsed, err := Parse("w.yaml", []byte(source))
		if err != nil {
			t.Fatal(uri, err)
		}
		got := command(t, parsed, `{"user": "ann", "uri": "https://evil.example/"}`)
		if bound := strings.Contains(got, `"origins":["`+want+`"]`); want != "" && !bound || want == "" && strings.Contains(got, "origins") {
			t.Errorf("%s: %s, want %q", uri, got, want)
		}
		if warned := len(parsed.Warnings) == 1 && parsed.Warnings[0].Code == warnHost; warned != (want == "") {
			t.Errorf("%s: warnings %v", uri, parsed.Warnings)
		}
	}
}
