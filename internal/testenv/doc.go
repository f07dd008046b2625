// Package testenv gives tests real servers: a PostgreSQL cluster for each test process with a database for each test,
// and nats-server processes of their own that can be stopped, killed and started again.
//
// A package that uses it has
//
//	func TestMain(m *testing.M) { testenv.Main(m) }
//
// which also stops what was started. Set RELAYOPS_TEST_DATABASE_URL to run against a server of your own; its role
// must be allowed to create databases.
package testenv
