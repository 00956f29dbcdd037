package openworkflow

import (
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/program"
)

// TestAPathKeepsItsParts: a value that would make another path of a template is refused. In the
// query it is a value like any other.
func TestAPathKeepsItsParts(t *testing.T) {
	t.Parallel()
	const refused = "error: the path needs a value for {id} that is not empty, . or .."
	call := func(endpoint string) string {
		return head("do:\n  - ask: {call: http, with: {method: get, endpoint: '" + endpoint + "'}}\n")
	}
	for id, want := range map[string]string{
		`"7"`: `"uri":"https://x.example/orders/7/items?q=7#/7"`, `"a/.."`: `/orders/a%2F../items?q=a%2F..#/a%2F.."`, `"..."`: `/orders/.../items`,
		`""`: refused, `"."`: refused, `".."`: refused, `null`: "error: the URI needs a value for {id}",
	} {
		if got, _ := asked(t, call("https://x.example/orders/{id}/items?q={id}#/{id}"), `{"id":`+id+`}`); !strings.Contains(got, want) {
			t.Errorf("%s: %s", id, got)
		}
		if strings.HasPrefix(want, "error: the URI") {
			want = "error: the path needs a value for {id}"
		} else if want != refused {
			want = `"uri":"https://pets.example/v2/pets/`
		}
		if got, _ := asked(t, api(pets, "getPet", ", parameters: {id: '${ .id }'}"), `{"id":`+id+`}`); !strings.Contains(got, want) {
			t.Errorf("openapi, %s: %s", id, got)
		}
	}
	for _, value := range []string{`""`, `".."`} {
		if got, _ := asked(t, call("https://x.example/orders?q={id}/{id}"), `{"id":`+value+`}`); strings.HasPrefix(got, "error") {
			t.Errorf("%s in a query: %s", value, got)
		}
	}
}

// TestWhatOnlyReadsMayBeAskedAnew: by its method, of calls by HTTP alone.
func TestWhatOnlyReadsMayBeAskedAnew(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]bool{
		head("do:\n  - ask: {call: http, with: {method: get, endpoint: 'https://x.example'}}\n"):                                   true,
		head("do:\n  - ask: {call: http, with: {method: post, endpoint: 'https://x.example'}}\n"):                                  false,
		head("do:\n  - ask: {call: http, with: {method: post, endpoint: 'https://x.example', newKey: true}}\n"):                    true,
		head("do:\n  - ask: {call: charge, with: {method: get}}\n"):                                                                false,
		head("use: {functions: {f: {call: http, with: {method: head, endpoint: 'https://x.example'}}}}\ndo: [{ask: {call: f}}]\n"): true,
		api(pets, "getPet", ", parameters: {id: 1}"):                                                                               true,
		api(pets, "putPet", ", parameters: {id: 1, body: x}"):                                                                      false,
		api(pets, "getPet", ", parameters: {id: 1}, newKey: false"):                                                                true,
		api(orders, "placeOrder", ", parameters: {body: x}"):                                                                       false,
	} {
		_, parsed := asked(t, source, `{}`)
		if got := parsed.Definition.(*program.Program).Root.List[0].Call.NewKey; got != want {
			t.Errorf("%t, want %t:\n%s", got, want, source)
		}
	}
}
