package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/store"
)

// The rules of accessibility of axe-core find nothing serious on any page, light or dark,
// narrow or wide.
func TestPagesAreAccessible(t *testing.T) {
	t.Parallel()
	axe, err := os.ReadFile("testdata/axe/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Skip("THE CONSOLE IS NOT TRIED BY THE RULES OF ACCESSIBILITY: .ci/install-axe installs them")
	}
	n, c, base := running(t)
	ctx := t.Context()
	for _, source := range []string{asking, accessibleLifecycle} {
		if _, _, err := c.Publish(ctx, "a.yaml", []byte(source)); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := c.Start(ctx, client.StartRequest{Definition: "test/ask", InstanceID: "i-1"}, 0); err != nil {
		t.Fatal(err)
	}
	if err := n.store.Parts().Writer.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte("no message")}}}); err != nil {
		t.Fatal(err)
	}
	ann := atConsole(t, base)
	ann.press(http.StatusOK, "/instances/plan?status=waiting", map[string][]string{"operation": {"suspend"}}, "The plan was made")
	b := atBrowser(t, base)
	b.open("/")
	b.do(chromedp.Click(chromedp.CSS("header summary")))
	b.write("input[name=user]", "ann")
	b.press("That is me")
	b.says("Tasks for ann") // a page that is still being left would be in the way
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		for path, operation := range pagesOf {
			if operation == "get-lifecycle" {
				path = "/lifecycles/test/papers"
			}
			b.open(path)
			value[string](b, string(axe)+`; ""`)
			found := b.promised(`axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify(r.violations.map(v => ({id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.slice(0, 3).map(n => n.html)}))))`)
			var violations []struct {
				ID, Impact, Help string
				Nodes            []string
			}
			if err := json.Unmarshal([]byte(found), &violations); err != nil {
				t.Fatal(err)
			}
			for _, v := range violations {
				if slices.Contains([]string{"serious", "critical"}, v.Impact) {
					t.Errorf("%s (%s): %s, %s: %s\n%q", path, scheme, v.Impact, v.ID, v.Help, v.Nodes)
				}
			}
		}
	}
}

const accessibleLifecycle = `
lifecycle: '1.0'
environment: test
definition: papers
version: '1.0.0'
states: {Draft: {category: initial}, Done: {category: final}}
events: {close: {}}
transitions: [{from: Draft, event: close, to: Done}]
`

// promised is what a promise of the page gives.
func (b *browser) promised(expression string) string {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// scheme has the browser prefer light or dark pages.
func (b *browser) scheme(scheme string) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	}))
}
