package main

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/aqueduct-engine/aqueduct/access"
	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// What an outage has left is mended at the console by filters: each kind of dead letter by
// a plan, which is shown before anything is done; nothing else is touched, and all of it
// has an audit with the reason.
func TestAnOutageIsMendedAtTheConsole(t *testing.T) {
	t.Parallel()
	n, bearer := askingNode(t)
	parts := n.store.Parts()
	if err := leaveOutage(t.Context(), parts.Writer, false); err != nil {
		t.Fatal(err)
	}
	olga, vera := bearer("olga", access.Operator, access.Viewer), bearer("vera", access.Viewer)
	order := strings.ReplaceAll(asking, "namespace: test, name: ask", "namespace: shop, name: order")
	if _, _, err := n.catalogue.Publish(t.Context(), "o.yaml", []byte(order)); err != nil {
		t.Fatal(err)
	}

	olga.page("/dead-letters", `<code>definition.unknown</code> 250</a>`, `<code>signal.foreign</code> 110</a>`, `<code>instance.unknown</code> 40</a>`)
	olga.page("/dead-letters?reason=signal.foreign&text=old-shop", "any text", "Do to all of these", `action="/console/dead-letters/plan?reason=signal.foreign&amp;text=old-shop"`)
	plan := func(list string, filter, form url.Values) string {
		t.Helper()
		page := olga.press(http.StatusOK, "/"+list+"/plan?"+filter.Encode(), form, "The plan was made")
		m := regexp.MustCompile(`action="/console/bulk/([^/"]+)/run"`).FindStringSubmatch(page)
		if m == nil {
			t.Fatalf("no plan to run:\n%s", page)
		}
		return m[1]
	}
	run := func(id, says string) {
		t.Helper()
		for range 100 {
			page := olga.press(http.StatusOK, "/bulk/"+id+"/run", url.Values{"begin": {"yes"}})
			if strings.Contains(page, says) {
				return
			}
			if !strings.Contains(page, "while this page is open") {
				t.Fatalf("it neither goes on nor says %q:\n%s", says, page)
			}
		}
	}

	discard := plan("dead-letters", url.Values{"reason": {"signal.foreign"}, "text": {"old-shop"}}, url.Values{"operation": {"discard"}, "why": {"the old shop is closed"}})
	replay := plan("dead-letters", url.Values{"reason": {"definition.unknown"}, "older": {"1m"}}, url.Values{"operation": {"replay"}, "why": {"it is published now"}})
	if err := leaveOutage(t.Context(), parts.Writer, true); err != nil { // one that is in no plan
		t.Fatal(err)
	}
	olga.page("/bulk/"+discard, "60 in all", "with the text <code>old-shop</code>", "the old shop is closed", `<code>signal.foreign</code>`, "What is not in it is not touched", "l-350")
	if page := vera.refused(http.StatusOK, "/bulk/"+discard, "60 in all"); page == "" {
		t.Error("who may look sees nothing")
	}
	vera.press(http.StatusForbidden, "/bulk/"+discard+"/run", url.Values{"begin": {"yes"}}, "access.denied")
	run(discard, "60 done, 0 skipped, 0 failed.")
	run(replay, "250 done, 0 skipped, 0 failed.")
	olga.page("/bulk", "the old shop is closed", "it is published now")

	left, err := parts.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]int{}
	for _, l := range left.Items {
		of[l.Reason+" "+l.Detail]++
	}
	if len(left.Items) != 191 || of["signal.foreign the runtime provider is new-shop"] != 50 || of["definition.unknown definition shop/order is not published"] != 1 {
		t.Errorf("%d are left: %v", len(left.Items), of)
	}
	audit, err := parts.Audit.Audit(t.Context(), backend.AuditQuery{Action: "discard", Limit: 100})
	if err != nil || len(audit.Items) != 60 || slices.ContainsFunc(audit.Items, func(a store.Audit) bool {
		return a.User != "olga" || a.Via != "console" || !strings.HasSuffix(a.Reason, ": the old shop is closed")
	}) {
		t.Errorf("the audit has %d of the discarded, %v: %+v", len(audit.Items), err, audit.Items[:min(1, len(audit.Items))])
	}

	// What was begun is not lost when it is refused, and a filter that plans nothing says so.
	olga.press(http.StatusUnprocessableEntity, "/instances/plan?definition=shop%2Forder", url.Values{"operation": {"migrate"}, "why": {"a new law"}}, `value="a new law"`, `selected>migrate`,
		`action="/console/instances/plan?definition=shop%2Forder"`, `href="/console/instances?`)
	for _, id := range []string{"i-a", "i-b"} {
		olga.press(http.StatusOK, "/definitions/shop/order/1.0.0/start", url.Values{"id": {id}}, "It has begun.")
	}
	olga.press(http.StatusOK, "/instances/plan?definition=shop%2Forder&status=waiting", url.Values{"operation": {"suspend"}}, "Plan to suspend 2")
}

// A page that shows a run has it go on by itself; without that somebody presses for each
// step.
func TestARunGoesOnAtABrowser(t *testing.T) {
	t.Parallel()
	n, c, base := running(t)
	parts := n.store.Parts()
	if err := leaveOutage(t.Context(), parts.Writer, false); err != nil {
		t.Fatal(err)
	}
	begun, err := client.NewBulk(c).Plan(t.Context(), client.BulkRequest{Operation: "discard", ErrorCode: "instance.unknown"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := parts.Plans.Bulk(t.Context(), begun.ID)
	if err != nil {
		t.Fatal(err)
	}
	p.Status, p.Version = backend.BulkRunning, p.Version+1 // whoever ran it has ended
	if err := parts.Bulk.ChangeBulk(t.Context(), p); err != nil {
		t.Fatal(err)
	}

	b := atBrowser(t, base)
	b.open("/dead-letters?reason=signal.foreign&text=old-shop")
	b.says("Do to all of these")
	picture(t, b, "dead-letters")
	b.write("[name=why]", "the old shop is back")
	b.press("Plan it")
	b.says("60 in all")
	picture(t, b, "plan")
	b.press("replay 60")
	b.says("60 done, 0 skipped, 0 failed.")
	b.says("the old shop is back")

	atConsole(t, base).page("/bulk/"+begun.ID+"?go=on", `hx-trigger="load, every 10s"`) // a request that fails is not the last
	b.open("/bulk/" + begun.ID + "?go=on")
	b.says("40 done, 0 skipped, 0 failed.")
	for _, path := range []string{"/bulk", "/bulk/" + begun.ID, "/dead-letters"} {
		for _, width := range []int64{320, 1920} {
			b.do(chromedp.EmulateViewport(width, 900))
			b.open(path)
			if over := value[int](b, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); over > 0 {
				t.Errorf("%s is %d wider than a screen of %d", path, over, width)
			}
		}
	}
}
