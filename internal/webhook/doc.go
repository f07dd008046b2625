// Package webhook refuses OutboxRelays and Pipelines with mistakes that neither schema nor CEL can find: in a graph, in
// the configuration of its nodes, in timing against the relay, in conflict with another relay. It finds them with
// internal/resolve, as relayops lint and the controllers do, and names all at once with their field paths.
//
// What a resource refers to may come later: a Pipeline whose OutboxRelay is not there is accepted with a warning. What
// is being deleted, or changes nothing but metadata, is never refused: a mistake must not hold a finalizer.
package webhook
