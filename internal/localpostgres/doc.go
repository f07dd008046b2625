// Package localpostgres runs a private PostgreSQL server from the binaries that the machine has: relayops dev keeps
// its data there, and the tests run against it. It listens on loopback only, asks for a password that it makes
// itself, and dies with the process that started it.
//
//	no data ──initdb──► stopped ──Start──► running ──Stop (fast)──► stopped
//	                       ▲                  │
//	                       └──Kill (crash)────┘      recovery runs at the next Start
//
// An orphan of a killed owner is found by its postmaster.pid and stopped before the new server starts.
package localpostgres
