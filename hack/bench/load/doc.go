// Package load makes a benchmark's events: many at once for a backlog, or an open loop of producers that commit at
// times fixed in advance.
package load
