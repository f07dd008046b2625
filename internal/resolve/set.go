package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/manifest"
	"github.com/relayops/relayops/internal/runspec"
)

// Load reads manifests and resolves them: what relayops lint and relayops dev begin with. Where there is any problem,
// nothing may be started.
func Load(mounts Mounts, paths ...string) (manifest.Set, []runspec.Relay, []runspec.Worker, manifest.Problems) {
	set, problems := manifest.Load(paths...)
	relays, workers, more := Set(set, mounts)
	return set, relays, workers, problems.Merge(more)
}

// Set resolves all resources of a set, in its order. The problems are those that reading the set did not find; a
// resource with a problem has no specification.
func Set(set manifest.Set, mounts Mounts) ([]runspec.Relay, []runspec.Worker, manifest.Problems) {
	r := resolution{set: set, mounts: mounts}
	for _, relay := range set.Relays {
		r.relay(relay)
	}
	r.shared()
	for _, pipeline := range set.Pipelines {
		r.pipeline(pipeline)
	}
	return r.relays, r.workers, r.problems
}

type resolution struct {
	set      manifest.Set
	mounts   Mounts
	relays   []runspec.Relay
	workers  []runspec.Worker
	problems manifest.Problems
}

func (r *resolution) report(source manifest.Source, object string, faults []Fault) {
	for _, fault := range faults {
		r.problems = append(r.problems, source.Problem(object, fault.Field, fault.Found, fault.Allowed))
	}
}

func relayName(relay *v1alpha1.OutboxRelay) string {
	return manifest.Name(v1alpha1.KindOutboxRelay, relay.Namespace, relay.Name)
}

func (r *resolution) relay(relay manifest.Relay) {
	name, faults := relayName(relay.Object), CheckRelay(relay.Object)
	if len(faults) == 0 && !relay.Faulty {
		resolved, err := Relay(relay.Object, r.mounts)
		if err == nil {
			r.relays = append(r.relays, resolved)
			return
		}
		faults = append(faults, Fault{Found: err.Error(), Allowed: "a resource that fits the schema"})
	}
	r.report(relay.Source, name, faults)
}

func (r *resolution) pipeline(pipeline manifest.Pipeline) {
	object := pipeline.Object
	name := manifest.Name(v1alpha1.KindPipeline, object.Namespace, object.Name)
	relay, names := r.relayOf(object)
	faults := CheckPipeline(object, relay)
	if relay == nil && object.Spec.RelayRef.Name != "" {
		allowed := "an OutboxRelay of namespace " + object.Namespace + "; there is none"
		if len(names) > 0 {
			allowed = "an OutboxRelay of namespace " + object.Namespace + ": " + strings.Join(names, ", ")
		}
		faults = append(faults, Fault{
			Field: "spec.relayRef.name", Found: fmt.Sprintf("%q, which does not exist", object.Spec.RelayRef.Name),
			Allowed: allowed,
		})
	}
	if len(faults) == 0 && !pipeline.Faulty {
		resolved, err := Worker(object, relay, r.mounts)
		if err == nil {
			r.workers = append(r.workers, resolved)
			return
		}
		faults = append(faults, Fault{Found: err.Error(), Allowed: "a resource that fits the schema"})
	}
	r.report(pipeline.Source, name, faults)
}

// relayOf finds a pipeline's relay, and the names of all that it could have.
func (r *resolution) relayOf(pipeline *v1alpha1.Pipeline) (found *v1alpha1.OutboxRelay, names []string) {
	for _, relay := range r.set.Relays {
		if relay.Object.Namespace != pipeline.Namespace {
			continue
		}
		names = append(names, relay.Object.Name)
		if relay.Object.Name == pipeline.Spec.RelayRef.Name {
			found = relay.Object
		}
	}
	slices.Sort(names)
	return found, names
}

// shared finds relays that would get into each other's way. Two on one outbox would each publish only what it claims
// first, so that neither stream had all events; two on one stream, or with the same subjects, would fight over it.
func (r *resolution) shared() {
	for i, relay := range r.set.Relays {
		for _, other := range r.set.Relays[:i] {
			r.report(relay.Source, relayName(relay.Object), Conflicts(relay.Object, other.Object, r.mounts))
		}
	}
}

// Conflicts are the mistakes of a relay beside another one, which is there already.
func Conflicts(relay, other *v1alpha1.OutboxRelay, mounts Mounts) []Fault {
	var faults []Fault
	name, also := relay.Name, other.Namespace+"/"+other.Name
	sameDatabase := mounts.Database != nil ||
		relay.Namespace == other.Namespace && relay.Spec.Database.URLSecretRef == other.Spec.Database.URLSecretRef
	mine, theirs := table(relay.Spec.Table), table(other.Spec.Table)
	if sameDatabase && mine.String() == theirs.String() {
		faults = append(faults, Fault{
			Field: "spec.table", Found: fmt.Sprintf("the outbox %s, which OutboxRelay %s publishes too", mine, also),
			Allowed: "one OutboxRelay for one outbox",
		})
	}
	if mounts.NATS == nil && relay.Spec.NATS.URL != other.Spec.NATS.URL {
		return faults
	}
	streams := [2]v1alpha1.StreamSpec{relay.Spec.Stream, other.Spec.Stream}
	switch {
	case streams[0].Name == streams[1].Name:
		faults = append(faults, Fault{
			Field: "spec.stream.name", Found: fmt.Sprintf("%q, the stream of OutboxRelay %s too", streams[0].Name, also),
			Allowed: "a stream of its own for OutboxRelay " + name,
		})
	case streams[0].SubjectPrefix == streams[1].SubjectPrefix:
		faults = append(faults, Fault{
			Field:   "spec.stream.subjectPrefix",
			Found:   fmt.Sprintf("%q beside %q of OutboxRelay %s", streams[0].SubjectPrefix, streams[1].SubjectPrefix, also),
			Allowed: "subjects of its own for OutboxRelay " + name,
		})
	}
	return faults
}
