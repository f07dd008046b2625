// Package apply makes the live children of a resource what is desired of them: with server-side apply under one field
// owner, and only where something differs. What is no longer desired is pruned.
//
//	desired object ──► Document ──► differs from the live one? ──no──► nothing is written
//	                                        │ yes
//	                    live one controlled by another? ──yes──► OwnedByOtherError, nothing is written
//	                                        │ no
//	                                server-side apply, forced
//
// A live object differs where a field that is desired has another value there, or where it was made from another
// document: an annotation holds the document's hash, so that a field which is no longer desired is noticed. Fields that
// others set beside ours are theirs.
package apply
