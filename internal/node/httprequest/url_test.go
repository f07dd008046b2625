package httprequest

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/relayops/relayops/internal/engine"
	"github.com/relayops/relayops/internal/node/config"
)

func render(t testing.TB, source string, payload map[string]any) (string, error) {
	t.Helper()
	var read config.Reader
	template := compileURL(&read, source)
	if err := read.Err(); err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	u, err := template.render(map[string]any{"payload": payload})
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

func TestURL(t *testing.T) {
	payload := map[string]any{
		"n": "A/1 ?#&", "dots": "..", "climb": "../../admin", "host": "erp-1.example", "evil": "evil.example/x?", "user": "a@b",
		"port": "8080", "base": "https://erp.example/api", "ftp": "ftp://x", "empty": "", "login": "https://u:p@erp.example",
		"words": "no url", "control": "http://a\r\nb", "frag": "http://a/#x",
	}
	tests := []struct{ source, want string }{
		{`https://erp.example/orders`, `https://erp.example/orders`},
		{`https://erp.example/orders/{{n}}/x`, `https://erp.example/orders/A%2F1%20%3F%23&/x`},
		{`https://erp.example/?n={{n}}&m=1`, `https://erp.example/?n=A%2F1+%3F%23%26&m=1`},
		{`https://erp.example?n={{n}}`, `https://erp.example?n=A%2F1+%3F%23%26`},
		{`https://{{host}}/orders`, `https://erp-1.example/orders`},
		{`https://{{host}}:{{port}}/orders`, `https://erp-1.example:8080/orders`},
		{`https://x.{{host}}`, `https://x.erp-1.example`},
		{`{{base}}`, `https://erp.example/api`},
		{`{{base}}/orders/{{n}}`, `https://erp.example/api/orders/A%2F1%20%3F%23&`},
		{`{{base}}{{n}}`, `https://erp.example/apiA%2F1%20%3F%23&`},
		{`{{base}}?n={{n}}`, `https://erp.example/api?n=A%2F1+%3F%23%26`},
		{`HTTPS://erp.example/`, `https://erp.example/`},
		{`https://erp.example/{{dots}}`, ``},
		{`https://erp.example/a/{{climb}}`, ``},
		{`https://erp.example/a/./b`, ``},
		{`https://{{evil}}/orders`, ``},
		{`https://{{user}}/orders`, ``},
		{`https://{{empty}}.example/orders`, ``},
		{`{{ftp}}`, ``}, {`{{empty}}`, ``}, {`{{login}}/x`, ``}, {`{{words}}`, ``}, {`{{control}}`, ``}, {`{{frag}}`, ``},
	}
	for _, test := range tests {
		got, err := render(t, test.source, payload)
		var failure *engine.Failure
		if test.want == "" && (!errors.As(err, &failure) || failure.Code != engine.CodeInvalidRequest) || got != test.want {
			t.Errorf("%s: %q, %v; want %q", test.source, got, err, test.want)
		}
	}
}

func TestURLFaults(t *testing.T) {
	for source, want := range map[string]string{
		`ftp://erp.example/x`:               `url: found the scheme "ftp"; allowed: http:// or https://, a host and a path`,
		`file:///etc/passwd`:                `url: found the scheme "file"; allowed: http:// or https://, a host and a path`,
		`erp.example/x`:                     `url: found the scheme that is missing, or unknown; allowed: http:// or https://, a host and a path`,
		`https:///x`:                        `url: found no host; allowed: http:// or https://, a host and a path`,
		`https://user:hunter2@erp.example/`: `url: found a user or a password in the URL; allowed: a header such as Authorization`,
		`https://{{u}}:{{p}}@erp.example/`:  `url: found a user or a password in the URL; allowed: a header such as Authorization`,
		`https://erp.example/#top`:          `url: found a fragment (#), which is never sent; allowed: http:// or https://, a host and a path`,
		`https://erp example/`:              `url: found text that is no URL; allowed: http:// or https://, a host and a path`,
		`http{{s}}://erp.example/`:          `url: found the scheme "http1"; allowed: http:// or https://, a host and a path`,
		`https://erp.example/{{`:            `url: found the placeholder {{; allowed: after {{: a name; {{{{ stands for a literal {{`,
	} {
		var read config.Reader
		compileURL(&read, source)
		if err := read.Err(); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", source, err, want)
		}
	}
}

// Whatever a payload holds, it does not change a URL's shape.
func TestPayloadsDoNotShapeURLs(t *testing.T) {
	value := rapid.OneOf(rapid.String(), rapid.StringMatching(`[./?#@:%&=\\a]{1,12}`))
	rapid.Check(t, func(t *rapid.T) {
		path, query := value.Draw(t, "path"), value.Draw(t, "query")
		var read config.Reader
		template := compileURL(&read, "https://erp.example/a/x{{path}}/b?q={{query}}&r=1")
		u, err := template.render(map[string]any{"payload": map[string]any{"path": path, "query": query}})
		if err != nil {
			return // Refused is fine.
		}
		again, err := url.Parse(u.String())
		if err != nil {
			t.Fatalf("%s: %v", u, err)
		}
		values, err := url.ParseQuery(again.RawQuery)
		if err != nil || again.Host != "erp.example" || again.User != nil || again.Fragment != "" || len(values) != 2 ||
			values.Get("q") != query || strings.Count(again.EscapedPath(), "/") != 3 || again.Path != "/a/x"+path+"/b" {
			t.Fatalf("%q, %q gave %s: %v", path, query, u, err)
		}
	})
}
