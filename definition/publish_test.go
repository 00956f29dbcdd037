package definition_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// claim is a lifecycle of a version with a state, and policyOn a policy that names one.
func claim(version, state string) string {
	return fmt.Sprintf(`
lifecycle: '1.0'
environment: t
definition: claim
version: '%s'
states: {Draft: {category: initial}, %[2]s: {}, Done: {category: final}}
events: {submit: {}, end: {}}
transitions: [{from: Draft, event: submit, to: %[2]s}, {from: %[2]s, event: end, to: Done}]
`, version, state)
}

func policyOn(version, state string) string {
	return fmt.Sprintf("policy: '1.0'\nenvironment: t\ndefinition: claim\nversion: '%s'\nstates: {%s: {timeout: PT1H}}\n", version, state)
}

// set is a workflow that sets a value.
func set(version string, x int) string { return string(source(version, x)) }

// running is a workflow that runs another and waits for it.
func running(name, other string) string {
	return fmt.Sprintf("document: {dsl: '1.0.3', namespace: t, name: %s, version: '1.0.0'}\ndo: [{a: {run: {workflow: {namespace: t, name: %s, version: '1.0.0'}}}}]\n", name, other)
}

func documents(texts ...string) (all []definition.Document) {
	for i, text := range texts {
		all = append(all, definition.Document{File: fmt.Sprintf("%c.yaml", 'a'+i), Source: []byte(text)})
	}
	return all
}

// ids are the records of a repository, with the place of each among those of its name.
func (m *memory) ids() (all []string) {
	for id, r := range m.records {
		all = append(all, fmt.Sprint(id, " ", r.Ordinal))
	}
	slices.Sort(all)
	return all
}

func TestPublishAll(t *testing.T) {
	t.Parallel()
	// In any order: a policy names states of a lifecycle beside it, the newest of two versions.
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}} {
		m := &memory{}
		c := catalogue(m)
		all := documents(claim("1.0.0", "Review"), claim("1.1.0", "Check"), policyOn("1.0.0", "Check"), policyOn("1.1.0", "Check"))
		given := make([]definition.Document, 4)
		for to, from := range order {
			given[to] = all[from]
		}
		out, err := c.PublishAll(t.Context(), given)
		if err != nil {
			t.Fatal(order, err)
		}
		for i, p := range out {
			if !p.Created || string(p.Source) != string(given[i].Source) {
				t.Errorf("%v: %d: %+v", order, i, p)
			}
		}
		want := []string{"policy:t/claim@1.0.0 1", "policy:t/claim@1.1.0 2", "t/claim@1.0.0 1", "t/claim@1.1.0 2"}
		if got := m.ids(); !slices.Equal(got, want) {
			t.Errorf("%v: %q", order, got)
		}
		more := append(documents(set("1.0.0", 1)), given...)
		more[0].File = "n.yaml"
		out, err = c.PublishAll(t.Context(), more)
		if err != nil || !out[0].Created || slices.ContainsFunc(out[1:], func(p definition.Published) bool { return p.Created }) || len(m.ids()) != 5 {
			t.Errorf("again, with one more: %+v, %v, %q", out, err, m.ids())
		}
	}
}

// A node remembers the policy that counts. When another has published a newer one, and
// retention has deleted that, it asks once more.
func TestAPolicyThatIsRememberedMayBeGone(t *testing.T) {
	t.Parallel()
	m := &memory{}
	remembers, other := catalogue(m), catalogue(m)
	all := documents(claim("1.0.0", "Review"), claim("1.1.0", "Review"), policyOn("1.0.0", "Review"))
	if _, err := remembers.PublishAll(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	policy := func(version string) string {
		t.Helper()
		def, err := remembers.Find(t.Context(), "t/claim", version)
		if err != nil {
			t.Fatal(err)
		}
		return def.(interface{ ByPolicy() *engine.Policy }).ByPolicy().Version
	}
	if got := policy("1.0.0"); got != "1.0.0" {
		t.Errorf("it goes by policy %q", got)
	}
	if _, err := other.PublishAll(t.Context(), documents(policyOn("1.1.0", "Review"))); err != nil {
		t.Fatal(err)
	}
	delete(m.records, "policy:t/claim@1.0.0")
	if got := policy("1.1.0"); got != "1.1.0" {
		t.Errorf("it goes by policy %q", got)
	}
}

// What is wrong with one document is said with its name, and nothing is published.
func TestPublishAllOrNone(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("#", definition.MaxDocumentsBytes/2)
	for _, c := range []struct {
		code, says string
		docs       []definition.Document
	}{
		{"definition.invalid", "b.yaml", documents(claim("1.0.0", "Review"), strings.Replace(claim("2.0.0", "Check"), "to: Done", "to: Gone", 1))},
		{"definition.invalid", "c.yaml:", documents(set("1.0.0", 1), "document: {}", "document: {dsl: '1.0.3'}")},
		{"definition.unknown-kind", "b.yaml: the kind", documents(set("1.0.0", 1), "a: 1")},
		{"policy.invalid", "a.yaml:5:17", documents(policyOn("1.0.0", "Revue"), claim("1.0.0", "Review"))},
		{"policy.unknown-definition", "b.yaml: no definition", documents(set("1.0.0", 1), policyOn("1.0.0", "Review"))},
		{"policy.no-lifecycle", "b.yaml: definition t/claim@1.0.0", documents(running("claim", "x"), policyOn("1.0.0", "Review"))},
		{"definition.conflict", "a.yaml and b.yaml are both t/n@1.0.0", documents(set("1.0.0", 1), set("1.0.0", 1))},
		{"definition.conflict", "b.yaml: t/n@0.1.0 is published", documents(set("1.0.0", 1), set("0.1.0", 2))},
		{"definition.cyclic", "t/x runs t/y runs t/x", documents(running("x", "y"), running("y", "x"))},
		{"definition.too-many", "0 documents", nil},
		{"definition.too-many", "101 documents", documents(make([]string, definition.MaxDocuments+1)...)},
		{"definition.too-many", "2 documents", documents(set("1.0.0", 1)+long, set("2.0.0", 1)+long)},
	} {
		m := &memory{}
		cat := catalogue(m)
		if _, _, err := cat.Publish(t.Context(), "n.yaml", source("0.1.0", 1)); err != nil {
			t.Fatal(err)
		}
		_, err := cat.PublishAll(t.Context(), c.docs)
		if problem.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) || len(m.records) != 1 {
			t.Errorf("%s %q: %v, and there are %q", c.code, c.says, err, m.ids())
		}
	}
	m := &memory{}
	_, err := catalogue(m).PublishAll(t.Context(), documents("document: {}", set("1.0.0", 1), "lifecycle: '1.0'", "a: 1"))
	var p *problem.Error
	if !errors.As(err, &p) || !strings.Contains(p.Detail, "d.yaml: the kind") {
		t.Fatal(err)
	}
	files := map[string]bool{}
	for _, w := range p.Where {
		files[w.File] = true
	}
	if len(files) != 2 || !files["a.yaml"] || !files["c.yaml"] {
		t.Errorf("findings of %v", files)
	}
}

// What is wrong with a policy is said beside what is wrong with the other documents, unless
// one of those may be the lifecycle that the policy means.
func TestAllThatIsWrongIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	other := strings.NewReplacer("claim", "order")
	cycle := strings.Replace(claim("1.0.0", "Review"), "to: Done", "to: Gone", 1)
	for _, c := range []struct {
		docs      []definition.Document
		says, not []string
	}{
		{documents(claim("1.0.0", "Review"), other.Replace(claim("1.0.0", "Review")), policyOn("1.0.0", "Revue"), other.Replace(policyOn("1.0.0", "Rewiew"))),
			[]string{"c.yaml:5", "Revue", "d.yaml:5", "Rewiew"}, nil},
		{documents(claim("1.0.0", "Review"), "{{", policyOn("1.0.0", "Revue")), []string{"b.yaml", "c.yaml:5"}, nil},
		{documents(claim("1.0.0", "Review"), set("1.0.0", 1), set("1.0.0", 2), policyOn("1.0.0", "Revue")), []string{"b.yaml and c.yaml are both", "d.yaml:5"}, nil},
		{documents(cycle, policyOn("1.0.0", "Revue")), []string{"a.yaml"}, []string{"b.yaml"}}, // nobody knows the states yet
		{documents("{{", policyOn("1.0.0", "Review")), []string{"a.yaml"}, []string{"b.yaml"}},
		{documents("document: {}", policyOn("1.0.0", "Review")), []string{"a.yaml", "b.yaml: no definition"}, nil},
		{documents(running("x", "y"), running("y", "x"), claim("1.0.0", "Review"), policyOn("1.0.0", "Revue")), []string{"a.yaml: ", "b.yaml: ", "d.yaml:5"}, nil},
		{documents(set("0.1.0", 2), claim("1.0.0", "Review"), policyOn("1.0.0", "Revue")), []string{"a.yaml: t/n@0.1.0 is published", "c.yaml:5"}, nil},
	} {
		m := &memory{}
		cat := catalogue(m)
		publish(t, cat, "0.1.0")
		_, err := cat.PublishAll(t.Context(), c.docs)
		if err == nil || len(m.records) != 1 {
			t.Fatalf("%v, %q", err, m.ids())
		}
		for _, want := range c.says {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not say %q", err, want)
			}
		}
		for _, no := range c.not {
			if strings.Contains(err.Error(), no) {
				t.Errorf("%v says %q", err, no)
			}
		}
	}
}

// A document without a file is called by its place.
func TestDocumentsWithoutAFile(t *testing.T) {
	t.Parallel()
	unnamed := func(texts ...string) (all []definition.Document) {
		for _, text := range texts {
			all = append(all, definition.Document{Source: []byte(text)})
		}
		return all
	}
	for _, c := range []struct {
		docs []definition.Document
		says string
	}{
		{unnamed(set("1.0.0", 1), set("1.0.0", 1)), "documents[0] and documents[1] are both t/n@1.0.0"},
		{unnamed(set("1.0.0", 1), claim("1.0.0", "Review"), policyOn("1.0.0", "Revue")), "documents[2]:5"},
		{unnamed(set("1.0.0", 1), "document: {}"), "documents[1]:1"},
	} {
		_, err := catalogue(&memory{}).PublishAll(t.Context(), c.docs)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v does not say %q", err, c.says)
		}
	}
	if _, err := catalogue(&memory{}).PublishAll(t.Context(), unnamed("document: {}")); err == nil || strings.Contains(err.Error(), "documents[0]") {
		t.Errorf("the only one: %v", err)
	}
}

// Several documents take the memory of one after the other, and what a publication keeps
// of them until they are stored has room beside that. One that is too large is named.
func TestSeveralDocumentsTakeTheMemoryOfOne(t *testing.T) {
	t.Parallel()
	m := &memory{}
	c := catalogue(m)
	one := len(claim("1.0.0", "Review")) * 2 // what is stored is longer than what was written
	most := int64(one) * definition.CompilingFactor
	var taken int64
	c.Bound(most, func(_ context.Context, bytes int64) (func(), error) {
		if taken += bytes; taken > most {
			t.Errorf("%d bytes of %d are taken", taken, most)
		}
		return func() { taken -= bytes }, nil
	})
	newest := 0
	if err := c.Through(t.Context(), func(ctx context.Context, versions []definition.Version) (bool, error) {
		var records []definition.Record
		for _, v := range versions {
			records = append(records, *v.Record)
			if !v.Newest {
				continue
			}
			if def, err := v.Definition(ctx); err != nil || def.Ref().Digest != v.Record.Digest {
				t.Errorf("%s is %v, %v", v.Record.Name, def, err)
			}
			newest++
		}
		return m.PutDefinitions(ctx, records)
	}); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for i := range 20 {
		texts = append(texts, strings.ReplaceAll(claim("1.0.0", "Review"), "claim", fmt.Sprintf("claim%d", i)))
	}
	out, err := c.PublishAll(t.Context(), documents(texts...))
	if err != nil || len(out) != 20 || newest != 20 || len(m.records) != 20 || taken != 0 {
		t.Fatalf("%d, %d newest, %d bytes taken, %v", len(out), newest, taken, err)
	}
	if _, err := c.Find(t.Context(), "t/claim7", ""); err != nil {
		t.Error(err)
	}
	large := set("1.0.0", 1) + "#" + strings.Repeat("x", 2*one)
	_, err = c.PublishAll(t.Context(), documents(texts[0], large))
	if problem.CodeOf(err) != "definition.memory" || !strings.Contains(err.Error(), "b.yaml: a definition of") || len(m.records) != 20 {
		t.Errorf("%v", err)
	}
}

// Who publishes through somebody gives all versions to one call: lower ones are not the newest.
func TestPublishAllThrough(t *testing.T) {
	t.Parallel()
	m := &memory{}
	c := catalogue(m)
	var calls [][]string
	tries := 0
	if err := c.Through(t.Context(), func(ctx context.Context, versions []definition.Version) (bool, error) {
		var call []string
		var records []definition.Record
		for _, v := range versions {
			call, records = append(call, fmt.Sprint(definition.ID(v.Record.Name, v.Record.Version), " ", v.Record.Ordinal, " ", v.Newest)), append(records, *v.Record)
		}
		calls = append(calls, call)
		if tries++; tries == 1 { // somebody is faster
			if _, _, err := catalogue(m).Publish(ctx, "n.yaml", source("1.1.0", 1)); err != nil {
				t.Error(err)
			}
			return false, nil
		}
		return m.PutDefinitions(ctx, records)
	}); err != nil {
		t.Fatal(err)
	}
	out, err := c.PublishAll(t.Context(), documents(set("1.2.0", 1), set("1.1.0", 1), set("1.0.0", 1), policyOn("1.0.0", "Review"), claim("1.0.0", "Review")))
	if err != nil || !out[0].Created || out[1].Created || !out[2].Created {
		t.Fatalf("%+v, %v", out, err)
	}
	want := [][]string{
		{"policy:t/claim@1.0.0 1 false", "t/claim@1.0.0 1 true", "t/n@1.0.0 1 false", "t/n@1.1.0 2 false", "t/n@1.2.0 3 true"},
		{"policy:t/claim@1.0.0 1 false", "t/claim@1.0.0 1 true", "t/n@1.0.0 2 false", "t/n@1.2.0 3 true"},
	}
	if fmt.Sprint(calls) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", calls, want)
	}
}
