// Command driver is what make demo runs: it starts an ERP stub, relayops dev with the sample manifests, and an order
// service; shows live how the orders fare; and at the end adds up whether every committed event is accounted for.
//
//	orderservice ──commit──► PostgreSQL ◄──┐
//	                                       │ tally (only reads)
//	relayops dev ◄── outbox ───────────────┤
//	      │                             driver ──► progress, summary, traces
//	      └──HTTP──► erpstub ◄── stats ────┘
//
// The three are processes of their own, as they would be anywhere; their output is in the data directory.
package main
