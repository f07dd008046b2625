package statustoken

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// ErrRefused means that a token is not good for this daemon now.
var ErrRefused = errors.New("token refused")

// Verifier accepts the tokens of one key for one audience.
type Verifier struct {
	key    ed25519.PublicKey
	parser *jwt.Parser
}

// NewVerifier takes the public key in base64. Its error is [ErrKey].
func NewVerifier(publicKey, audience string, now func() time.Time) (*Verifier, error) {
	key, err := base64.StdEncoding.DecodeString(publicKey)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("%w: found a status key that is not %d bytes in base64", ErrKey, ed25519.PublicKeySize)
	}
	if audience == "" {
		return nil, fmt.Errorf("%w: found a status key without an audience; allowed: both or none", ErrKey)
	}
	return &Verifier{key: key, parser: jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithIssuer(Issuer),
		jwt.WithAudience(audience), jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(leeway),
		jwt.WithTimeFunc(now),
	)}, nil
}

// Verify reports whether the token is one of the operator's for this daemon. Its error is [ErrRefused] and says why.
func (v *Verifier) Verify(token string) error {
	_, err := v.parser.ParseWithClaims(token, &jwt.RegisteredClaims{}, func(*jwt.Token) (any, error) { return v.key, nil })
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return nil
}
