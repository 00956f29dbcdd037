package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/internal/await"
)

// browserPatience is how long a page may take to say what it should, on a machine
// that is busy.
const browserPatience = 5 * time.Minute

// browser is a real one, of somebody who looks at a console.
type browser struct {
	t    *testing.T
	ctx  context.Context
	base string
	also string // where it may go besides: to the identity provider; "" = nowhere

	mu    sync.Mutex
	wrong []string // what the page should never do: errors, requests elsewhere
}

// atBrowser begins a browser. Without one the test is skipped, which the gate takes
// for a failure.
func atBrowser(t *testing.T, base string, flags ...chromedp.ExecAllocatorOption) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium-headless-shell", "chromium", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		t.Skip("THE CONSOLE IS NOT SEEN BY A BROWSER: there is none; .ci/install-browser installs Debian's")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WSURLReadTimeout(browserPatience))
	options = append(options, flags...)
	allocated, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(allocated)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx, base: base}
	if err := chromedp.Listen(ctx, b.notice); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, w := range b.wrong {
			t.Errorf("the browser saw: %s", w)
		}
	})
	return b
}

// notice looks at what a browser reports: errors of the page, what its policy
// refused, and requests to anywhere but the node.
func (b *browser) notice(ev any) {
	wrong := ""
	switch e := ev.(type) {
	case *runtime.EventExceptionThrown:
		wrong = "exception: " + e.ExceptionDetails.Text
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == "error" && !strings.Contains(e.Entry.Text, "responded with a status of 4") && !strings.Contains(e.Entry.Text, "ERR_CONNECTION_REFUSED") && !strings.Contains(e.Entry.Text, "ERR_CONNECTION_RESET") && !strings.Contains(e.Entry.Text, "ERR_EMPTY_RESPONSE") {
			wrong = "log: " + e.Entry.Text
		}
	case *network.EventRequestWillBeSent:
		if u := e.Request.URL; !strings.HasPrefix(u, b.base) && !strings.HasPrefix(u, "data:") && (b.also == "" || !strings.HasPrefix(u, b.also)) {
			wrong = "request: " + u
		}
	}
	if wrong != "" {
		b.mu.Lock()
		b.wrong = append(b.wrong, wrong)
		b.mu.Unlock()
	}
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, browserPatience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *browser) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.base + "/console" + path))
}

// says waits until the page says something.
func (b *browser) says(text string) {
	b.t.Helper()
	await.Until(b.t, fmt.Sprintf("the page to say %q", text), func() (bool, any) {
		seen, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body ? document.body.innerText : ''"))
		if err != nil {
			return false, nil // a page that is being left has no text
		}
		return strings.Contains(seen, text), seen
	})
}

func value[T any](b *browser, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// press clicks a button by its text.
func (b *browser) press(text string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.Search(fmt.Sprintf(`//button[normalize-space()=%q]`, text))))
}

func (b *browser) write(selector, text string) {
	b.t.Helper()
	set := fmt.Sprintf("(() => { const field = document.querySelector(%q); if (field) field.value = %q; return !!field })()", selector, text)
	await.Until(b.t, "a field "+selector, func() (bool, any) {
		there, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](set)) // at one go: a page may be on its way
		return err == nil && there, err
	})
}

// A person does a task in a real browser, and sees what others do without asking
// again. The page keeps to its policy, to the node, and to a narrow screen.
func TestAPersonAtABrowser(t *testing.T) {
	t.Parallel()
	_, c, base := running(t)
	ctx := t.Context()
	if _, _, err := c.Publish(ctx, "form.yaml", []byte(forms)); err != nil {
		t.Fatal(err)
	}
	b := atBrowser(t, base)
	b.open("/")
	b.says("No open task")
	if _, _, err := c.Start(ctx, client.StartRequest{Definition: "test/form", InstanceID: "b-1", Input: []byte(`{"who": "ann"}`)}, 0); err != nil {
		t.Fatal(err)
	}
	b.says("Approve <script>ann") // without another request of the person's
	b.do(chromedp.Click(chromedp.CSS("header summary")))
	b.write("input[name=user]", "kim")
	b.write("input[name=groups]", "clerks")
	b.press("That is me")
	b.says("kim")
	b.open("/tasks?status=all")
	b.do(chromedp.Click(chromedp.CSS("tbody a")))
	b.press("Claim")
	b.says("It is yours.")
	b.write(`[name="field.amount"]`, "12345678901234567890")
	b.write(`[name="field.owed"]`, "1")
	b.press("yes")
	b.says("It is done.")
	b.says("12345678901234567890")
	b.open("/instances/b-1")
	b.says("completed")
	if n := value[int](b, `document.querySelectorAll("svg .done").length`); n == 0 {
		t.Error("the path is not drawn")
	}
	b.open("/instances?status=completed&definition=test/form")
	b.do(chromedp.Click(chromedp.CSS("tbody a")))
	b.says("Timeline")
	b.do(chromedp.NavigateBack())
	b.says("Find")
	if at := value[string](b, "location.search"); at != "?status=completed&definition=test/form" {
		t.Errorf("back leads to %s", at)
	}
	b.do(chromedp.Reload())
	b.says("Find")
	if at := value[string](b, "location.search"); at != "?status=completed&definition=test/form" {
		t.Errorf("a reload leads to %s", at)
	}
	for _, path := range []string{"/", "/tasks?status=all", "/instances", "/instances/b-1", "/definitions", "/definitions/test/form/1.0.0", "/dead-letters", "/schedules", "/queues", "/audit", "/lifecycles", "/lifecycles/test/form"} {
		for _, width := range []int64{320, 1920} {
			b.do(chromedp.EmulateViewport(width, 900))
			b.open(path)
			if over := value[int](b, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); over > 0 {
				t.Errorf("%s is %d wider than a screen of %d", path, over, width)
			}
		}
	}
}

// picture writes what the page looks like, where somebody asks for it.
func picture(t *testing.T, b *browser, name string) {
	folder := os.Getenv("AQUEDUCT_PICTURES")
	if folder == "" {
		return
	}
	b.do(chromedp.EmulateViewport(1100, 700))
	shot := chromedp.FullScreenshot(100)
	if value[int](b, "document.documentElement.scrollHeight") > 2000 { // a list goes on as it begins
		shot = chromedp.CaptureScreenshot()
	}
	png, err := chromedp.Run(b.ctx, shot)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644)
	}
	if err != nil {
		t.Error(err)
	}
}

// A page that is open while its node is away goes on when the node is back, and
// another site's page can do nothing with it.
func TestABrowserOutlivesItsNode(t *testing.T) {
	t.Parallel()
	n, c, _ := running(t)
	if _, _, err := c.Publish(t.Context(), "a.yaml", []byte(asking)); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(n.handler)
	address := server.Listener.Addr().String()
	b := atBrowser(t, server.URL)
	b.open("/instances")
	b.says("No such instance")
	server.CloseClientConnections()
	server.Close()
	if _, _, err := c.Start(t.Context(), client.StartRequest{Definition: "test/ask", InstanceID: "back-1"}, 0); err != nil {
		t.Fatal(err)
	}
	const away = "the node does not answer"
	b.says(away)
	listener, err := listen(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	again := &http.Server{Handler: n.handler, ReadHeaderTimeout: time.Minute}
	go again.Serve(listener) //nolint:errcheck // it ends with the test
	t.Cleanup(func() { again.Close() })
	b.says("back-1")
	if seen := value[string](b, "document.body.innerText"); strings.Contains(seen, away) {
		t.Errorf("it answers, and the page says that it does not: %s", seen)
	}
	b.open("/instances/back-1") // what is opened and closed stays so, whatever comes
	value[string](b, `document.querySelector(".timeline details").open = true, document.querySelector("#live time").textContent = "never"`)
	await.Until(t, "another look", func() (bool, any) {
		seen := value[string](b, `document.querySelector("#live time").textContent`)
		return seen != "never", seen
	})
	if !value[bool](b, `document.querySelector(".timeline details").open`) {
		t.Error("what somebody has opened is closed")
	}

	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<form method="post" action="http://%s/console/instances/back-1/operate"><button name="operation" value="cancel">free coffee</button></form>`, address)
	}))
	defer evil.Close()
	b.mu.Lock()
	b.base = "http://127.0.0.1" // this one goes to another site on purpose
	b.mu.Unlock()
	b.do(chromedp.Navigate(evil.URL))
	b.press("free coffee")
	b.says("on behalf of another site")
	if i, err := c.Instance(t.Context(), "back-1"); err != nil || i.Status != "waiting" {
		t.Errorf("%s %v", i.Status, err)
	}
}

// Who is new starts the loan of the examples, approves it and sees its path, by
// what the pages say alone.
func TestALoanIsApprovedAtABrowser(t *testing.T) {
	t.Parallel()
	_, c, base := running(t)
	source, err := os.ReadFile("../../examples/loan-approval/workflow.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Publish(t.Context(), "workflow.yaml", source); err != nil {
		t.Fatal(err)
	}
	services := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"score": 640}`)
	}))
	defer services.Close()
	b := atBrowser(t, base)
	b.open("/definitions")
	b.do(chromedp.Click(chromedp.CSS("tbody a")))
	b.says("Picture")
	b.write("[name=data]", fmt.Sprintf(`{"services": %q, "applicant": "ada", "amount": 25000, "income": 9000}`, services.URL))
	b.write("[name=id]", "loan-4711")
	b.press("Start")
	b.says("nobody has claimed the task")
	picture(t, b, "instance")
	b.do(chromedp.Click(chromedp.CSS("header summary")))
	b.write("input[name=user]", "olga")
	b.write("input[name=groups]", "loan-officers")
	b.press("That is me")
	b.says("olga")
	b.open("/tasks")
	picture(t, b, "inbox")
	b.press("Claim the next task")
	b.says("It is yours.")
	picture(t, b, "task")
	b.press("approved")
	b.says("It is done.")
	b.open("/instances/loan-4711")
	b.says("completed")
	if n := value[int](b, `document.querySelectorAll("svg .fault").length`); n > 0 {
		t.Error("a loan that went well has a fault")
	}
	b.open("/queues") // which looks again, and draws
	b.says("turns per second")
}
