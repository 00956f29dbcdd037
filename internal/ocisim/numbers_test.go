package ocisim_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/godror/godror"
)

// randomNumber writes up to 37 digits with a point anywhere.
func randomNumber(r *rand.Rand) string {
	var b strings.Builder
	if r.IntN(2) == 0 {
		b.WriteByte('-')
	}
	n := 1 + r.IntN(37)
	point := r.IntN(n + 1)
	for i := range n {
		if i == point && i > 0 {
			b.WriteByte('.')
		}
		b.WriteByte(byte('0' + r.IntN(10)))
	}
	return b.String()
}

func TestNumbersAreExact(t *testing.T) {
	_, db := open(t)
	st, err := db.Prepare("SELECT :1, CAST(:2 AS VARCHAR2(100)) FROM dual")
	must(t, err)
	defer st.Close()
	r := rand.New(rand.NewPCG(1, 2))
	numbers := []string{"0", "0.01", "-0.01", "100", "1000000", "-100", "0.000000001", "1e20", "10", "-10", "0.1", "-1",
		"99999999999999999999999999999999999999"}
	for range 1000 {
		numbers = append(numbers, randomNumber(r))
	}
	for _, in := range numbers {
		var out godror.Number
		var text string
		must(t, st.QueryRow(godror.Number(in), godror.Number(in)).Scan(&out, &text))
		want, _ := new(big.Rat).SetString(in)
		got, ok := new(big.Rat).SetString(string(out))
		got2, ok2 := new(big.Rat).SetString(text)
		if !ok || !ok2 || want.Cmp(got) != 0 || want.Cmp(got2) != 0 {
			t.Errorf("%s came back as %s and %s", in, out, text)
		}
	}
	for _, v := range []int64{0, 1, -1, math.MaxInt64, math.MinInt64, 99, 100, 101, -100, 1e18} {
		equal(t, "integer", one[int64](t, db, "SELECT CAST(:1 AS NUMBER(19)) FROM dual", v), v)
	}
	for range 200 {
		v := math.Float64frombits(r.Uint64())
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		equal(t, "double", one[float64](t, db, "SELECT CAST(:1 AS BINARY_DOUBLE) FROM dual", v), v)
	}
}
