package statustoken

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	// Issuer of every token.
	Issuer = "relayops-manager"
	// Lifetime of a token.
	Lifetime = time.Minute
	// leeway is how far the clocks of operator and daemon may differ.
	leeway = 10 * time.Second
)

// ErrKey means that a key is not what it should be.
var ErrKey = errors.New("no Ed25519 key")

// Signer makes tokens.
type Signer struct {
	key ed25519.PrivateKey
	now func() time.Time
}

// NewSigner signs with the key of that seed, 32 bytes, as [NewSeed] makes it. Its error is [ErrKey].
func NewSigner(seed []byte, now func() time.Time) (*Signer, error) {
	if len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("%w: found a seed of %d bytes, allowed: %d", ErrKey, len(seed), ed25519.SeedSize)
	}
	return &Signer{key: ed25519.NewKeyFromSeed(seed), now: now}, nil
}

// NewSeed draws a key from a source of cryptographic randomness.
func NewSeed(random io.Reader) ([]byte, error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(random, seed); err != nil {
		return nil, fmt.Errorf("draw a key: %w", err)
	}
	return seed, nil
}

// PublicKey is what [NewVerifier] takes, in base64.
func (s *Signer) PublicKey() string {
	return base64.StdEncoding.EncodeToString(s.key.Public().(ed25519.PublicKey))
}

// Sign makes a token for one daemon, whose audience is namespace/name of its resource.
func (s *Signer) Sign(audience string) (string, error) {
	now := s.now()
	token, err := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.RegisteredClaims{
		Issuer: Issuer, Audience: jwt.ClaimStrings{audience},
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(Lifetime)),
	}).SignedString(s.key)
	if err != nil {
		return "", fmt.Errorf("sign a status token: %w", err)
	}
	return token, nil
}
