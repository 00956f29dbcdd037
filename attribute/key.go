package attribute

import (
	"encoding/binary"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// A key begins with the letter of its kind, so that a range of one kind has nothing
// of another.
var tags = map[Kind]byte{Boolean: 'b', Decimal: 'd', Text: 's', Time: 't'}

// MaxKey is the longest key: a text of characters with four bytes each.
const MaxKey = 1 + 4*256

// encode gives a value its canonical form and its key.
func encode(kind Kind, text string) (canonical string, key []byte, err error) {
	key = []byte{tags[kind]}
	switch kind {
	case Text:
		if n := utf8.RuneCountInString(text); n > MaxText {
			return "", nil, tooLong("it has %d characters; an attribute has at most %d", n, MaxText)
		}
		return text, append(key, text...), nil
	case Boolean:
		if text == "true" {
			return text, append(key, 1), nil
		}
		return text, append(key, 0), nil
	case Time:
		at, err := moment(text)
		if err != nil {
			return "", nil, problem.New(problem.Invalid, "attribute.type", "%.64q is no moment", text).WithHint("write 2026-01-31T12:00:00Z")
		}
		const positive = 1 << 63 // moves the negative ones before the others
		return at.Format(time.RFC3339Nano), binary.BigEndian.AppendUint64(key, uint64(at.UnixMicro())+positive), nil
	}
	d, err := decimal(text)
	if err != nil {
		return "", nil, err
	}
	return d.String(), d.appendKey(key), nil
}

// moment reads RFC 3339, with a date alone for its first moment in UTC, to the microsecond.
func moment(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		at, err = time.Parse(time.DateOnly, text)
	}
	return at.UTC().Truncate(time.Microsecond), err
}

func tooLong(format string, args ...any) error {
	return problem.New(problem.Invalid, "attribute.too-long", format, args...)
}

// number is 0.DIGITS times ten to the exponent. Zero has no digits.
type number struct {
	negative bool
	digits   string // none is zero at either end
	exponent int
}

// decimal reads a number as JSON has it.
func decimal(text string) (d number, err error) {
	rest, negative := strings.CutPrefix(text, "-")
	mantissa, exponent := rest, 0
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		mantissa = rest[:i]
		if exponent, err = strconv.Atoi(rest[i+1:]); err != nil {
			return d, tooLong("the exponent of %.64s is beyond %d", text, MaxExponent)
		}
	}
	before, after, _ := strings.Cut(mantissa, ".")
	all := before + after
	if all == "" || strings.Trim(all, "0123456789") != "" {
		return d, problem.New(problem.Invalid, "attribute.type", "%.64q is no decimal", text)
	}
	digits := strings.TrimLeft(all, "0")
	exponent += len(before) - (len(all) - len(digits))
	if digits = strings.TrimRight(digits, "0"); digits == "" {
		return number{}, nil
	}
	switch {
	case len(digits) > MaxDigits:
		return d, tooLong("it has %d digits; an attribute has at most %d", len(digits), MaxDigits)
	case exponent > MaxExponent && (exponent > MaxExponent+1 || digits != "1") || exponent <= -MaxExponent:
		return d, tooLong("%.64s is not between 1e-%d and 1e%d", text, MaxExponent, MaxExponent)
	}
	return number{negative, digits, exponent}, nil
}

// String writes it without an exponent.
func (d number) String() string {
	if d.digits == "" {
		return "0"
	}
	sign := ""
	if d.negative {
		sign = "-"
	}
	n := len(d.digits)
	switch {
	case d.exponent <= 0:
		return sign + "0." + strings.Repeat("0", -d.exponent) + d.digits
	case d.exponent >= n:
		return sign + d.digits + strings.Repeat("0", d.exponent-n)
	}
	return sign + d.digits[:d.exponent] + "." + d.digits[d.exponent:]
}

// appendKey writes sign, exponent and digits; of a negative one each reversed, with an end
// that is behind all digits.
func (d number) appendKey(b []byte) []byte {
	const negative, zero, positive = 0, 1, 2
	exponent := byte(d.exponent + MaxExponent)
	switch {
	case d.digits == "":
		return append(b, zero)
	case !d.negative:
		return append(append(b, positive, exponent), d.digits...)
	}
	b = append(b, negative, ^exponent)
	for i := range len(d.digits) {
		b = append(b, '0'+'9'-d.digits[i])
	}
	return append(b, '~')
}
