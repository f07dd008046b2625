// Package webhookcert is the operator's own certificate for admission: an authority and a certificate in one Secret of
// the operator's namespace, which all operators share, and the authority in the webhook configurations.
//
//	       none ──► made ──► served
//	                 ▲          │  a third of its time is left
//	                 └──────────┘  certificate: signed anew by the same authority
//	                            │  a fifth of the authority's time is left
//	                 ┌──────────┘
//	                 ▼
//	new authority in the configurations, beside the former ──► its certificate served
//
// A certificate is served only once its authority was found in the configurations, so that no call is refused on the
// way. Operators that look at the same time agree by the Secret's resource version: one writes, the others take what it
// wrote.
package webhookcert
