// The program that holds a pod's namespaces open.
module github.com/relayops/relayops/hack/cluster/pause

go 1.26.0
