// Package rig sets up what a benchmark runs on: a PostgreSQL with default durability, a nats-server, and the programs
// under test, each a process of its own so that CPU and memory can be told apart. Everything is started from one
// directory, ends with the benchmark (in order, or by the kernel when it is killed), and is removed with it.
//
//	benchmark ──┬── postgres       internal/localpostgres, fsync and synchronous_commit on
//	            ├── broker         this program again, as nats-server with file storage
//	            ├── relay, worker  built from cmd/, started from specification files
//	            └── limit loop     this program again, as a hand-written loop
package rig
