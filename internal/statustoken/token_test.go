package statustoken_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/relayops/relayops/internal/statustoken"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func at(t time.Time) func() time.Time { return func() time.Time { return t } }

func signer(t *testing.T, fill byte, now time.Time) *statustoken.Signer {
	t.Helper()
	made, err := statustoken.NewSigner(bytes.Repeat([]byte{fill}, ed25519.SeedSize), at(now))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func verifier(t *testing.T, key string, now time.Time) *statustoken.Verifier {
	t.Helper()
	made, err := statustoken.NewVerifier(key, "shop/orders", at(now))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestTokens(t *testing.T) {
	s := signer(t, 1, noon)
	foreign := signer(t, 2, noon)
	raw := func(method jwt.SigningMethod, key any, claims jwt.RegisteredClaims) string {
		token, err := jwt.NewWithClaims(method, claims).SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	claims := jwt.RegisteredClaims{
		Issuer: statustoken.Issuer, Audience: jwt.ClaimStrings{"shop/orders"},
		ExpiresAt: jwt.NewNumericDate(noon.Add(time.Minute)),
	}
	own := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	noEnd, otherIssuer := claims, claims
	noEnd.ExpiresAt, otherIssuer.Issuer = nil, "somebody"
	sign := func(s *statustoken.Signer, audience string) string {
		token, err := s.Sign(audience)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	for _, one := range []struct {
		name, token string
		now         time.Time
		accepted    bool
	}{
		{"good", sign(s, "shop/orders"), noon, true},
		{"a clock behind", sign(s, "shop/orders"), noon.Add(-5 * time.Second), true},
		{"just before its end", sign(s, "shop/orders"), noon.Add(59 * time.Second), true},
		{"expired", sign(s, "shop/orders"), noon.Add(2 * time.Minute), false},
		{"from the future", sign(s, "shop/orders"), noon.Add(-time.Minute), false},
		{"another daemon's", sign(s, "shop/invoices"), noon, false},
		{"another namespace's", sign(s, "shop2/orders"), noon, false},
		{"another key's", sign(foreign, "shop/orders"), noon, false},
		{"none", raw(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, claims), noon, false},
		{"HS256 with the public key", raw(jwt.SigningMethodHS256, []byte(own.Public().(ed25519.PublicKey)), claims), noon, false},
		{"no end", raw(jwt.SigningMethodEdDSA, own, noEnd), noon, false},
		{"another issuer's", raw(jwt.SigningMethodEdDSA, own, otherIssuer), noon, false},
		{"nothing", "", noon, false},
		{"no token", "abc", noon, false},
		{"cut off", strings.TrimSuffix(sign(s, "shop/orders"), "A")[:40], noon, false},
	} {
		err := verifier(t, s.PublicKey(), one.now).Verify(one.token)
		if one.accepted != (err == nil) || err != nil && !errors.Is(err, statustoken.ErrRefused) {
			t.Errorf("%s: accepted %t, want %t: %v", one.name, err == nil, one.accepted, err)
		}
	}
}

func TestKeysAreChecked(t *testing.T) {
	if _, err := statustoken.NewSigner([]byte("short"), time.Now); !errors.Is(err, statustoken.ErrKey) {
		t.Errorf("a short seed: %v", err)
	}
	for _, key := range []string{"", "!", "c2hvcnQ="} {
		if _, err := statustoken.NewVerifier(key, "a/b", time.Now); !errors.Is(err, statustoken.ErrKey) {
			t.Errorf("key %q: %v", key, err)
		}
	}
	if _, err := statustoken.NewVerifier(signer(t, 1, noon).PublicKey(), "", time.Now); !errors.Is(err, statustoken.ErrKey) {
		t.Errorf("no audience: %v", err)
	}
	one, err := statustoken.NewSeed(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := statustoken.NewSeed(rand.Reader); err != nil || bytes.Equal(one, other) {
		t.Errorf("two keys are the same: %v", err)
	}
	if _, err := statustoken.NewSeed(strings.NewReader("x")); err == nil {
		t.Error("a source that ends gave a key")
	}
}
