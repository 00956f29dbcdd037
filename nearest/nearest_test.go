package nearest

import "testing"

func TestName(t *testing.T) {
	names := []string{"switch", "set", "timeout", "metadata", "input"}
	for typed, want := range map[string]string{
		"swich": "switch", "swtich": "switch", "timeuot": "timeout", "Input": "input", "se": "set", "xyzzy": "", "": "",
	} {
		if got, _ := Name(typed, names); got != want {
			t.Errorf("Name(%q) = %q, want %q", typed, got, want)
		}
	}
}
