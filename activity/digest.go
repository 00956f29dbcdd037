package activity

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"net/http"
	"strings"
)

// digestAnswer answers a challenge of RFC 7616 with the strongest algorithm
// that both know; ok is false when there is none. It knows MD5 and SHA-256, each
// with or without a session, and protects requests without their bodies (qop
// auth), as servers ask for.
func digestAnswer(challenges []string, c credentials, req *http.Request) (answer string, ok bool) {
	best := map[string]string{}
	for _, header := range challenges {
		scheme, rest, _ := strings.Cut(strings.TrimSpace(header), " ")
		if !strings.EqualFold(scheme, "Digest") {
			continue
		}
		fields := challengeFields(rest)
		algorithm := strings.ToUpper(fields["algorithm"])
		if newHash(algorithm) == nil || fields["nonce"] == "" || fields["qop"] != "" && !offers(fields["qop"], "auth") {
			continue
		}
		if len(best) == 0 || strings.HasPrefix(algorithm, "SHA-256") {
			best = fields
		}
	}
	if len(best) == 0 {
		return "", false
	}
	random := make([]byte, 16)
	_, _ = rand.Read(random) // never fails
	return digestHeader(best, c, req.Method, req.URL.RequestURI(), hex.EncodeToString(random)), true
}

func digestHeader(f map[string]string, c credentials, method, uri, client string) string {
	algorithm := strings.ToUpper(f["algorithm"])
	h := func(parts ...string) string {
		d := newHash(algorithm)
		d.Write([]byte(strings.Join(parts, ":")))
		return hex.EncodeToString(d.Sum(nil))
	}
	const count = "00000001"
	first := h(c.Username, f["realm"], c.Password)
	if strings.HasSuffix(algorithm, "-SESS") {
		first = h(first, f["nonce"], client)
	}
	second := h(method, uri)
	response := h(first, f["nonce"], second)
	if f["qop"] != "" {
		response = h(first, f["nonce"], count, client, "auth", second)
	}
	out := fmt.Sprintf(`Digest username=%s, realm=%s, nonce=%s, uri=%s, response="%s"`,
		quotedText(c.Username), quotedText(f["realm"]), quotedText(f["nonce"]), quotedText(uri), response)
	if f["algorithm"] != "" {
		out += ", algorithm=" + f["algorithm"]
	}
	if f["opaque"] != "" {
		out += ", opaque=" + quotedText(f["opaque"])
	}
	if f["qop"] != "" {
		out += fmt.Sprintf(`, qop=auth, nc=%s, cnonce="%s"`, count, client)
	}
	return out
}

func newHash(algorithm string) hash.Hash {
	switch strings.TrimSuffix(algorithm, "-SESS") {
	case "", "MD5":
		return md5.New()
	case "SHA-256":
		return sha256.New()
	}
	return nil
}

func offers(list, what string) bool {
	for _, s := range strings.Split(list, ",") {
		if strings.EqualFold(strings.TrimSpace(s), what) {
			return true
		}
	}
	return false
}

func quotedText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// challengeFields reads name=value and name="value", separated by commas.
func challengeFields(s string) map[string]string {
	fields := map[string]string{}
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimLeft(s, ", \t") {
		name, rest, ok := strings.Cut(s, "=")
		if !ok {
			break
		}
		var value strings.Builder
		rest = strings.TrimLeft(rest, " \t")
		if quoted, ok := strings.CutPrefix(rest, `"`); ok {
			i := 0
			for ; i < len(quoted) && quoted[i] != '"'; i++ {
				if quoted[i] == '\\' && i+1 < len(quoted) {
					i++
				}
				value.WriteByte(quoted[i])
			}
			s = quoted[min(i+1, len(quoted)):]
		} else {
			text, after, _ := strings.Cut(rest, ",")
			value.WriteString(strings.TrimSpace(text))
			s = after
		}
		fields[strings.ToLower(strings.TrimSpace(name))] = value.String()
	}
	return fields
}
