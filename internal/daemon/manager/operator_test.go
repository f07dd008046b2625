package manager

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/conditions"
)

const relayYAML = `
apiVersion: relayops.io/v1alpha1
kind: OutboxRelay
metadata: {name: orders}
spec:
  database: {urlSecretRef: {name: orders-database, key: url}}
  nats: {url: "nats://nats.nats.svc:4222"}
  allowAllOrgs: true
`

const pipelineYAML = `
apiVersion: relayops.io/v1alpha1
kind: Pipeline
metadata: {name: order-post}
spec:
  relayRef: {name: orders}
  trigger: order.post
  nodes:
  - {id: start, type: start}
  - {id: ok, type: set-status, config: {statusTag: success, name: Seen, phase: order.post}}
  edges:
  - {from: start, to: ok}
`

// namespaceOf is a namespace of the test, in which pods have to be restricted.
func namespaceOf(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "test-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := world.admin.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

func relayIn(t *testing.T, namespace string, changes ...func(*v1alpha1.OutboxRelay)) *v1alpha1.OutboxRelay {
	t.Helper()
	relay := &v1alpha1.OutboxRelay{}
	if err := yaml.UnmarshalStrict([]byte(relayYAML), relay); err != nil {
		t.Fatal(err)
	}
	relay.Namespace = namespace
	// Tests share one API server, and a stream has one owner.
	relay.Spec.Stream.Name, relay.Spec.Stream.SubjectPrefix = namespace, namespace
	for _, change := range changes {
		change(relay)
	}
	if err := world.admin.Create(t.Context(), relay); err != nil {
		t.Fatal(err)
	}
	release(t, relay)
	return relay
}

func pipelineIn(t *testing.T, namespace string, changes ...func(*v1alpha1.Pipeline)) *v1alpha1.Pipeline {
	t.Helper()
	pipeline := newPipeline(t, namespace)
	for _, change := range changes {
		change(pipeline)
	}
	if err := world.admin.Create(t.Context(), pipeline); err != nil {
		t.Fatal(err)
	}
	release(t, pipeline)
	return pipeline
}

func newPipeline(t *testing.T, namespace string) *v1alpha1.Pipeline {
	t.Helper()
	pipeline := &v1alpha1.Pipeline{}
	if err := yaml.UnmarshalStrict([]byte(pipelineYAML), pipeline); err != nil {
		t.Fatal(err)
	}
	pipeline.Namespace = namespace
	return pipeline
}

// release removes a resource at the test's end, so that the next test's operator does not look after it.
func release(t *testing.T, object client.Object) {
	t.Cleanup(func() {
		ctx := context.Background()
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
		for _, err := range []error{world.admin.Delete(ctx, object), world.admin.Patch(ctx, object, patch)} {
			if client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		}
	})
}

func eventually(t *testing.T, what string, is func() (bool, string)) {
	t.Helper()
	last := ""
	for deadline := time.Now().Add(40 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		var done bool
		if done, last = is(); done {
			return
		}
	}
	t.Fatalf("%s: not within 40 s; last: %s", what, last)
}

func get[T client.Object](t *testing.T, object T, namespace, name string) (T, bool) {
	t.Helper()
	err := world.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return object, err == nil
}

// conditionIs waits for a condition of a status and, if one is given, of a reason, at the present generation.
func conditionIs(t *testing.T, object client.Object, kind string, status metav1.ConditionStatus, reason conditions.Reason,
) metav1.Condition {
	t.Helper()
	var found metav1.Condition
	eventually(t, fmt.Sprintf("%s of %s is %s %s", kind, object.GetName(), status, reason), func() (bool, string) {
		var all []metav1.Condition
		switch object := object.(type) {
		case *v1alpha1.OutboxRelay:
			read, _ := get(t, &v1alpha1.OutboxRelay{}, object.Namespace, object.Name)
			all, object.Generation = read.Status.Conditions, read.Generation
		case *v1alpha1.Pipeline:
			read, _ := get(t, &v1alpha1.Pipeline{}, object.Namespace, object.Name)
			all, object.Generation = read.Status.Conditions, read.Generation
		}
		condition := meta.FindStatusCondition(all, kind)
		if condition == nil {
			return false, fmt.Sprint("none in ", all)
		}
		found = *condition
		return condition.Status == status && (reason == "" || condition.Reason == string(reason)) &&
			condition.ObservedGeneration == object.GetGeneration(), fmt.Sprintf("%+v", *condition)
	})
	return found
}

// From kubectl apply to Ready, then nothing is written any more; a changed or deleted child is repaired.
func TestResourcesSettleAndStay(t *testing.T) {
	startOperator(t, nil)
	namespace := namespaceOf(t)
	pipeline := pipelineIn(t, namespace)
	conditionIs(t, pipeline, conditions.TypeRelayFound, metav1.ConditionFalse, conditions.ReasonRelayMissing)
	relay := relayIn(t, namespace)
	conditionIs(t, relay, conditions.TypeReady, metav1.ConditionTrue, conditions.ReasonRunning)
	began := time.Now()
	conditionIs(t, pipeline, conditions.TypeReady, metav1.ConditionTrue, conditions.ReasonRunning)
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("the Pipeline was ready %s after its relay: it did not watch, but looked again by itself", took)
	}
	for _, name := range []string{"orders-relay", "order-post-worker"} {
		for _, kind := range []client.Object{
			&appsv1.Deployment{}, &corev1.ServiceAccount{}, &corev1.ConfigMap{}, &corev1.Service{},
			&policyv1.PodDisruptionBudget{},
		} {
			child, found := get(t, kind, namespace, name)
			if !found || metav1.GetControllerOf(child) == nil {
				t.Errorf("%T %s: found %t, controlled by %v", kind, name, found, metav1.GetControllerOf(child))
			}
		}
	}
	read, _ := get(t, &v1alpha1.Pipeline{}, namespace, pipeline.Name)
	if read.Status.Key != "default/"+namespace+"/order-post" || read.Status.Consumer == "" || read.Status.Revision == "" ||
		read.Status.Replicas == nil || *read.Status.Replicas != 1 || read.Status.Selector == "" {
		t.Errorf("found the status %+v", read.Status)
	}

	time.Sleep(2 * time.Second)
	size := auditSize(t)
	// Both are looked at again, and find everything as it should be. Then nothing happens, for longer than any interval
	// at which what is not ready would be looked at.
	touch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"touched":"yes"}}}`))
	for _, object := range []client.Object{relay, pipeline} {
		if err := world.admin.Patch(t.Context(), object, touch); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(35 * time.Second)
	if found := writes(t, size); len(found) > 0 {
		t.Errorf("found %d writes in a steady state, want none:\n%s", len(found), strings.Join(found, "\n"))
	}

	deployment, _ := get(t, &appsv1.Deployment{}, namespace, "order-post-worker")
	deployment.Spec.Template.Spec.Containers[0].Image = "intruder"
	if err := world.admin.Update(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an edited child is repaired", func() (bool, string) {
		read, _ := get(t, &appsv1.Deployment{}, namespace, "order-post-worker")
		image := read.Spec.Template.Spec.Containers[0].Image
		return image == "relayops:test", image
	})
	configMap, _ := get(t, &corev1.ConfigMap{}, namespace, "orders-relay")
	if err := world.admin.Delete(t.Context(), configMap); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a deleted child is made again", func() (bool, string) {
		_, found := get(t, &corev1.ConfigMap{}, namespace, "orders-relay")
		return found, "missing"
	})
}

// What the relay and the worker tell shows in the conditions.
func TestDaemonsWordShows(t *testing.T) {
	startOperator(t, nil)
	namespace := namespaceOf(t)
	world.status.set("orders-relay."+namespace+".svc",
		`{"state": "Paused", "reason": "DatabaseUnreachable", "message": "no route"}`)
	relay := relayIn(t, namespace)
	conditionIs(t, relay, conditions.TypeDatabaseReachable, metav1.ConditionFalse, "DatabaseUnreachable")
	conditionIs(t, relay, conditions.TypeReady, metav1.ConditionFalse, "")
	world.status.set("orders-relay."+namespace+".svc", `{"state": "Running"}`)
	conditionIs(t, relay, conditions.TypeReady, metav1.ConditionTrue, conditions.ReasonRunning)
}

// Without the webhook a mistake shows as Valid=False, and what runs goes on as it was.
func TestMistakesShow(t *testing.T) {
	startOperator(t, nil)
	namespace := namespaceOf(t)
	relayIn(t, namespace)
	pipeline := pipelineIn(t, namespace)
	conditionIs(t, pipeline, conditions.TypeReady, metav1.ConditionTrue, conditions.ReasonRunning)
	before, _ := get(t, &appsv1.Deployment{}, namespace, "order-post-worker")

	read, _ := get(t, &v1alpha1.Pipeline{}, namespace, pipeline.Name)
	read.Spec.Edges = append(read.Spec.Edges, v1alpha1.Edge{From: "ok", To: "ok"})
	if err := world.admin.Update(t.Context(), read); err != nil {
		t.Fatal(err)
	}
	valid := conditionIs(t, pipeline, conditions.TypeValid, metav1.ConditionFalse, conditions.ReasonInvalid)
	if !strings.Contains(valid.Message, "spec.edges") {
		t.Errorf("found %q, want the field", valid.Message)
	}
	conditionIs(t, pipeline, conditions.TypeStalled, metav1.ConditionTrue, conditions.ReasonInvalid)
	after, found := get(t, &appsv1.Deployment{}, namespace, "order-post-worker")
	if !found || after.Generation != before.Generation {
		t.Errorf("found the Deployment %t, of generation %d, want %d", found, after.Generation, before.Generation)
	}
}

// Two relays on one outbox: the later one is at fault, until the earlier one is gone.
func TestConflictOfRelays(t *testing.T) {
	startOperator(t, nil)
	namespace := namespaceOf(t)
	first := relayIn(t, namespace)
	conditionIs(t, first, conditions.TypeReady, metav1.ConditionTrue, conditions.ReasonRunning)
	time.Sleep(1100 * time.Millisecond) // Times of creation have whole seconds.
	second := relayIn(t, namespace, func(r *v1alpha1.OutboxRelay) { r.Name = "again" })
	conditionIs(t, second, conditions.TypeValid, metav1.ConditionFalse, conditions.ReasonInvalid)
	if err := world.admin.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	conditionIs(t, second, conditions.TypeValid, metav1.ConditionTrue, conditions.ReasonValid)
}

// A foreign object with the name of a child is left alone, and named.
func TestForeignObjectsAreLeftAlone(t *testing.T) {
	startOperator(t, nil)
	namespace := namespaceOf(t)
	foreign := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "orders-relay"}, Data: map[string]string{"a": "b"},
	}
	if err := world.admin.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	relay := relayIn(t, namespace)
	ready := conditionIs(t, relay, conditions.TypeReady, metav1.ConditionFalse, conditions.ReasonChildOwnedByOther)
	if !strings.Contains(ready.Message, "ConfigMap orders-relay") {
		t.Errorf("found %q, want the object's name", ready.Message)
	}
	read, _ := get(t, &corev1.ConfigMap{}, namespace, "orders-relay")
	if len(read.Labels) > 0 || read.Data["a"] != "b" || read.Data["spec.json"] != "" {
		t.Errorf("found %v %v: it was written to", read.Labels, read.Data)
	}
}

// Suspended, scaled: the meaning shows, and scaling rolls no pods.
func TestSuspendAndScale(t *testing.T) {
	startOperator(t, nil)
	namespace := namespaceOf(t)
	relayIn(t, namespace)
	pipeline := pipelineIn(t, namespace)
	conditionIs(t, pipeline, conditions.TypeReady, metav1.ConditionTrue, conditions.ReasonRunning)
	template := func() string {
		read, _ := get(t, &appsv1.Deployment{}, namespace, "order-post-worker")
		text, err := yaml.Marshal(read.Spec.Template)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	before := template()
	scale := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":3}}`))
	if err := world.admin.Patch(t.Context(), pipeline, scale); err != nil {
		t.Fatal(err)
	}
	eventually(t, "three workers", func() (bool, string) {
		read, _ := get(t, &v1alpha1.Pipeline{}, namespace, pipeline.Name)
		return read.Status.Replicas != nil && *read.Status.Replicas == 3, fmt.Sprintf("%+v", read.Status)
	})
	if template() != before {
		t.Error("scaling changed the pods' template")
	}
	world.status.set("order-post-worker."+namespace+".svc", `{"state": "Suspended"}`)
	suspend := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"suspend":true}}`))
	if err := world.admin.Patch(t.Context(), pipeline, suspend); err != nil {
		t.Fatal(err)
	}
	conditionIs(t, pipeline, conditions.TypeReady, metav1.ConditionTrue, conditions.ReasonSuspended)
}

// deletionPolicy Delete: the pods go first, then a Job cleans up, then the resource goes.
func TestCleanupHoldsADeletionBack(t *testing.T) {
	startOperator(t, nil)
	namespace := namespaceOf(t)
	relay := relayIn(t, namespace, func(r *v1alpha1.OutboxRelay) { r.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete })
	conditionIs(t, relay, conditions.TypeReady, metav1.ConditionTrue, conditions.ReasonRunning)
	if err := world.admin.Delete(t.Context(), relay); err != nil {
		t.Fatal(err)
	}
	job := &batchv1.Job{}
	eventually(t, "a cleanup Job runs", func() (bool, string) {
		var found bool
		job, found = get(t, &batchv1.Job{}, namespace, "orders-relay-cleanup")
		return found, "missing"
	})
	if _, found := get(t, &appsv1.Deployment{}, namespace, "orders-relay"); found {
		t.Error("the relay's Deployment is still there")
	}
	time.Sleep(2 * time.Second)
	if _, found := get(t, &v1alpha1.OutboxRelay{}, namespace, relay.Name); !found {
		t.Fatal("the resource went before its cleanup")
	}
	now := metav1.Now()
	job.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1, Conditions: []batchv1.JobCondition{
		{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue},
		{Type: batchv1.JobComplete, Status: corev1.ConditionTrue},
	}}
	if err := world.admin.Status().Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the resource goes", func() (bool, string) {
		_, found := get(t, &v1alpha1.OutboxRelay{}, namespace, relay.Name)
		return !found, "still there"
	})
}

// Keep: nothing holds a deletion back.
func TestKeepHoldsNothingBack(t *testing.T) {
	startOperator(t, nil)
	namespace := namespaceOf(t)
	relay := relayIn(t, namespace)
	conditionIs(t, relay, conditions.TypeReady, metav1.ConditionTrue, conditions.ReasonRunning)
	if err := world.admin.Delete(t.Context(), relay); err != nil {
		t.Fatal(err)
	}
	if _, found := get(t, &v1alpha1.OutboxRelay{}, namespace, relay.Name); found {
		t.Error("the resource is still there")
	}
}

// Admission refuses what only the graph's validator finds, with every mistake and its field, and is served with the
// operator's own certificate.
func TestAdmission(t *testing.T) {
	startOperator(t, withWebhook(t))
	namespace := namespaceOf(t)
	eventually(t, "admission is served", func() (bool, string) {
		probe := newPipeline(t, namespace)
		err := world.admin.Create(t.Context(), probe, client.DryRunAll)
		return err == nil, fmt.Sprint(err)
	})
	relay := relayIn(t, namespace)
	conditionIs(t, relay, conditions.TypeReady, metav1.ConditionTrue, conditions.ReasonRunning)
	for name, one := range map[string]struct {
		change func(*v1alpha1.Pipeline)
		want   []string
	}{
		"a cycle": {
			func(p *v1alpha1.Pipeline) { p.Spec.Edges = append(p.Spec.Edges, v1alpha1.Edge{From: "ok", To: "ok"}) },
			[]string{"spec.edges"},
		},
		"an unknown type and an unknown trigger": {
			func(p *v1alpha1.Pipeline) { p.Spec.Nodes[1].Type, p.Spec.Trigger = "teleport", "no.such" },
			[]string{"spec.nodes[1].type", "spec.trigger"},
		},
		"retries that outlast the stream": {
			func(p *v1alpha1.Pipeline) {
				p.Spec.Retry.Attempts = 100
				p.Spec.Retry.BackOff.Initial, p.Spec.Retry.BackOff.Max = "24h", "24h"
			},
			[]string{"spec.retry"},
		},
	} {
		pipeline := newPipeline(t, namespace)
		one.change(pipeline)
		err := world.admin.Create(t.Context(), pipeline, client.DryRunAll)
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: found %v, want it invalid", name, err)
			continue
		}
		for _, field := range one.want {
			if !strings.Contains(err.Error(), field) {
				t.Errorf("%s: found %v, want %s in it", name, err, field)
			}
		}
	}
	pipeline := pipelineIn(t, namespace)
	conditionIs(t, pipeline, conditions.TypeReady, metav1.ConditionTrue, conditions.ReasonRunning)
	twin := relay.DeepCopy()
	twin.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: "twin"}
	if err := world.admin.Create(t.Context(), twin); !apierrors.IsInvalid(err) {
		t.Errorf("a second relay of one outbox: found %v, want it invalid", err)
	}
}

// Two operators: one leads, and the other takes over when it is gone.
func TestTwoOperators(t *testing.T) {
	leading := func(c *Config) { c.LeaderElection = true }
	namespace := namespaceOf(t)
	t.Run("the first", func(t *testing.T) {
		startOperator(t, leading)
		first := relayIn(t, namespace, func(r *v1alpha1.OutboxRelay) { r.Name = "first" })
		conditionIs(t, first, conditions.TypeReady, metav1.ConditionTrue, conditions.ReasonRunning)
	})
	startOperator(t, leading)
	startOperator(t, leading)
	relay := relayIn(t, namespace)
	conditionIs(t, relay, conditions.TypeReady, metav1.ConditionTrue, conditions.ReasonRunning)
}

func TestSettingsAreChecked(t *testing.T) {
	err := Run(t.Context(), Config{
		PodMonitors: "maybe", ImagePullPolicy: "Sometimes", Webhook: Webhook{Enabled: true, Certificates: "magic"},
	})
	for _, flag := range []string{"--namespace", "--image", "--image-pull-policy", "--pod-monitors", "--webhook-certificates"} {
		if err == nil || !strings.Contains(err.Error(), flag+": found") {
			t.Errorf("found %v, want %s in it", err, flag)
		}
	}
}
