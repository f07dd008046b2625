package httprequest

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/relayops/relayops/internal/node/config"
	"github.com/relayops/relayops/internal/placeholder"
)

// urlTemplate is a URL with placeholders. What one brings in is escaped for the place where it stands, so that data
// never changes a URL's shape: not the host, not the number of segments, not the parameters. Only a placeholder at the
// very beginning brings in a URL, or its beginning, as it is.
type urlTemplate struct {
	text   *placeholder.Text
	places []place
}

// place is where a placeholder stands.
type place int

const (
	placeBase place = iota
	placeHost
	placePath
	placeQuery
)

const allowedURL = "http:// or https://, a host and a path"

func compileURL(read *config.Reader, source string) *urlTemplate {
	text := read.Text("url", source)
	if text == nil || source == "" {
		return nil
	}
	t := &urlTemplate{text: text}
	sample := t.locate()
	switch u, err := url.Parse(sample); {
	case strings.Contains(sample, "#"):
		read.Fault("url", "a fragment (#), which is never sent", allowedURL)
	case err != nil:
		read.Fault("url", "text that is no URL", allowedURL)
	case u.Scheme != "http" && u.Scheme != "https":
		read.Fault("url", "the scheme "+schemeOf(u), allowedURL)
	case u.Host == "":
		read.Fault("url", "no host", allowedURL)
	case u.User != nil:
		read.Fault("url", "a user or a password in the URL", "a header such as Authorization")
	}
	return t
}

func schemeOf(u *url.URL) string {
	if u.Scheme == "" || len(u.Scheme) > 20 {
		return "that is missing, or unknown"
	}
	return `"` + u.Scheme + `"`
}

// locate finds the place of each placeholder, and gives the URL with 1 for each of them.
func (t *urlTemplate) locate() string {
	var sample strings.Builder
	for i, part := range t.text.Parts() {
		at := placeOf(sample.String())
		switch {
		case !part.IsPlaceholder():
			sample.WriteString(part.Literal)
		case i > 0:
			sample.WriteByte('1')
		default:
			at = placeBase
			sample.WriteString("http://x")
			if rest := t.text.Parts()[1:]; len(rest) > 0 && !strings.HasPrefix(rest[0].Literal, "/") {
				sample.WriteString("/x") // What follows continues the path that the base brings in.
			}
		}
		t.places = append(t.places, at)
	}
	return sample.String()
}

func placeOf(before string) place {
	_, afterScheme, _ := strings.Cut(before, "://")
	switch {
	case strings.Contains(before, "?"):
		return placeQuery
	case strings.Contains(afterScheme, "/"):
		return placePath
	default:
		return placeHost
	}
}

func (t *urlTemplate) render(data map[string]any) (*url.URL, error) {
	text, err := t.text.FillEach(data, maxURLBytes, func(part int, value string) (string, error) {
		switch t.places[part] {
		case placeHost:
			return value, checkHost(value)
		case placePath:
			return url.PathEscape(value), nil
		case placeQuery:
			return url.QueryEscape(value), nil
		default:
			return value, nil
		}
	})
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, invalid(errors.New("text that is no URL"))
	}
	return u, checkURL(u)
}

// checkHost refuses a value that would end the host's name, or put a user before it.
func checkHost(value string) error {
	for i := range len(value) {
		c := value[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_' {
			return invalid(fmt.Errorf("a value with %q in the URL's host", c))
		}
	}
	if value == "" {
		return invalid(errors.New("an empty value in the URL's host"))
	}
	return nil
}

func checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return invalid(errors.New("a URL whose scheme is not http or https"))
	case u.Hostname() == "":
		return invalid(errors.New("a URL without a host"))
	case u.User != nil:
		return invalid(errors.New("a URL with a user or a password"))
	case u.Fragment != "":
		return invalid(errors.New("a URL with a fragment"))
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment == "." || segment == ".." {
			return invalid(errors.New("a URL with . or .. in its path"))
		}
	}
	return nil
}
