package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/aqueduct-engine/aqueduct/api/client"
)

// A page of another site, which somebody opens in the browser in which they work, neither
// does anything at the node nor reads anything of it: not by a form, not by a script, and
// not under a name that leads to the node's address (DNS rebinding).
func TestOtherSitesAtABrowser(t *testing.T) {
	t.Parallel()
	_, c, base := running(t)
	ctx := t.Context()
	if _, _, err := c.Publish(ctx, "ask.yaml", []byte(asking)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Start(ctx, client.StartRequest{Definition: "test/ask", InstanceID: "i-1"}, 0); err != nil {
		t.Fatal(err)
	}
	hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><title>prize</title><link rel="icon" href="data:,"><p id="read">reading</p>
<form id="f" method="post" action="%[1]s/console/instances/i-1/operate"><input name="operation" value="cancel"><button>Win</button></form>
<script>
const said = [];
const read = u => fetch(u, {credentials: "include"}).then(r => r.text()).then(t => said.push("read " + t), () => said.push("nothing"));
const send = (u, type, body) => fetch(u, {method: "POST", mode: "no-cors", credentials: "include", headers: {"Content-Type": type}, body}).then(() => said.push("sent"), () => said.push("nothing"));
Promise.all([read("%[1]s/v1/instances"), read("%[1]s/console/instances"), read("%[1]s/metrics"),
  send("%[1]s/v1/instances/i-1/operations", "text/plain", JSON.stringify({operation: "cancel"})),
  send("%[1]s/console/instances/i-1/operate", "application/x-www-form-urlencoded", "operation=cancel")])
  .then(() => document.getElementById("read").textContent = "over: " + said.join(", "));
</script>`, base)
	}))
	defer hostile.Close()
	b := atBrowser(t, base, chromedp.Flag("host-resolver-rules", "MAP rebound.example 127.0.0.1"))
	unharmed := func() {
		t.Helper()
		i, err := c.Instance(ctx, "i-1")
		if err != nil || i.Status != "waiting" || i.StateVersion != 1 {
			t.Errorf("the instance is %s at version %d, %v", i.Status, i.StateVersion, err)
		}
	}
	b.do(chromedp.Navigate(hostile.URL))
	b.says("over: ")
	if said := value[string](b, `document.getElementById("read").textContent`); strings.Contains(said, "read ") {
		t.Errorf("another site reads: %s", said)
	}
	unharmed()
	b.press("Win")
	b.says("on behalf of another site")
	unharmed()
	b.do(chromedp.Navigate("about:blank"))
	b.forget() // what it saw was the other site's doing

	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	rebound := "http://rebound.example:" + u.Port()
	b.also = rebound
	for _, path := range []string{"/console/instances", "/v1/instances"} {
		b.do(chromedp.Navigate(rebound + path))
		b.says("request.host")
		if text := value[string](b, "document.body.innerText"); strings.Contains(text, "i-1") {
			t.Errorf("%s under another name shows what the node has:\n%s", path, text)
		}
	}
	unharmed()
	b.forget()
	b.open("/instances")
	b.says("i-1") // the browser itself may
}

// forget takes back what the browser saw until now.
func (b *browser) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = nil
}
