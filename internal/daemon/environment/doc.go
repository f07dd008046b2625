// Package environment reads what daemons have in common of their environment variables, and makes messages of what is
// wrong with them that name the variable, what was found and what is allowed.
package environment
