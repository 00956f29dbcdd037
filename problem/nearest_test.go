package problem

import "testing"

func TestNearest(t *testing.T) {
	names := []string{"switch", "set", "timeout", "metadata", "input"}
	for typed, want := range map[string]string{
		"swich": "switch", "swtich": "switch", "timeuot": "timeout", "Input": "input", "se": "set", "xyzzy": "", "": "",
	} {
		if got, _ := Nearest(typed, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", typed, got, want)
		}
	}
}
