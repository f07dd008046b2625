// Package statustoken lets a relay or worker know that a status call is the operator's: with short JSON Web Tokens,
// signed with an Ed25519 key of the operator, whose public half travels in the run specification. The daemon needs no
// Kubernetes client for that.
//
//	operator ── Signer ──► token {iss relayops-manager, aud namespace/name, exp in 60 s} ──► daemon ── Verifier
//
// A token for one daemon is of no use at another, and of none a minute later.
package statustoken
