package apply

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/relayops/relayops/internal/conditions"
	"github.com/relayops/relayops/internal/naming"
)

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var value map[string]any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// What the API server or others add is no difference; what they change or remove is.
func TestContains(t *testing.T) {
	wanted := `{spec: {replicas: 1, containers: [{name: a, image: x, env: [{name: E, value: "1"}]}], args: [p, q], empty: {}}}`
	for name, one := range map[string]struct {
		found string
		same  bool
	}{
		"the same":             {wanted, true},
		"defaults are added":   {`{spec: {replicas: 1, strategy: {type: R}, containers: [{name: a, image: x, tty: false, env: [{name: E, value: "1"}]}], args: [p, q], empty: {}}, status: {}}`, true},
		"a sidecar is added":   {`{spec: {replicas: 1, containers: [{name: s, image: s}, {name: a, image: x, env: [{name: F}, {name: E, value: "1"}]}], args: [p, q], empty: {}}}`, true},
		"a value is changed":   {strings.Replace(wanted, "image: x", "image: y", 1), false},
		"a field is removed":   {strings.Replace(wanted, "replicas: 1, ", "", 1), false},
		"an item is renamed":   {strings.Replace(wanted, "name: a", "name: b", 1), false},
		"a value is reordered": {strings.Replace(wanted, "[p, q]", "[q, p]", 1), false},
		"a value is longer":    {strings.Replace(wanted, "[p, q]", "[p, q, r]", 1), false},
		"an object is gone":    {strings.Replace(wanted, ", empty: {}", "", 1), false},
		"another type":         {strings.Replace(wanted, "[p, q]", "{p: q}", 1), false},
	} {
		if got := contains(parse(t, one.found), parse(t, wanted)); got != one.same {
			t.Errorf("%s: found %t, want %t", name, got, one.same)
		}
	}
}

func deployment() *appsv1.Deployment {
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: "orders-relay", Namespace: "shop", Labels: map[string]string{naming.LabelManagedBy: naming.ManagedBy}},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "relay", Image: "x"}},
			Volumes:    []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		}}},
	}
}

// A document claims no field that nobody set, and keeps what is empty on purpose.
func TestDocument(t *testing.T) {
	document, err := Document(deployment())
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(document.Object)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"status", "creationTimestamp", "strategy", "resources", "null"} {
		if strings.Contains(string(text), field) {
			t.Errorf("found %s in\n%s", field, text)
		}
	}
	if !strings.Contains(string(text), "emptyDir: {}") {
		t.Errorf("found no emptyDir in\n%s", text)
	}
	again, err := Document(deployment())
	if err != nil {
		t.Fatal(err)
	}
	changed := deployment()
	changed.Spec.Template.Spec.Containers[0].Image = "y"
	other, err := Document(changed)
	if err != nil {
		t.Fatal(err)
	}
	hash := func(d interface{ GetAnnotations() map[string]string }) string {
		return d.GetAnnotations()[naming.AnnotationDesiredHash]
	}
	if hash(document) == "" || hash(document) != hash(again) || hash(document) == hash(other) {
		t.Errorf("found the hashes %s, %s and of another %s", hash(document), hash(again), hash(other))
	}
}

func TestWhoseObjectIsIt(t *testing.T) {
	owner := &metav1.ObjectMeta{Name: "orders", UID: "1"}
	yes := true
	live := func(ours bool, owners ...metav1.OwnerReference) *corev1.ConfigMap {
		found := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "orders-relay", OwnerReferences: owners}}
		if ours {
			found.Labels = map[string]string{naming.LabelManagedBy: naming.ManagedBy}
			found.Annotations = map[string]string{naming.AnnotationDesiredHash: "x"}
		}
		return found
	}
	by := func(name, uid string) metav1.OwnerReference {
		return metav1.OwnerReference{Kind: "OutboxRelay", Name: name, UID: types.UID(uid), Controller: &yes}
	}
	isForeign := func(err error) bool { _, is := errors.AsType[*OwnedByOtherError](err); return is }
	isCollected := func(err error) bool { return errors.Is(err, ErrBeingCollected) }
	isNil := func(err error) bool { return err == nil }
	for name, one := range map[string]struct {
		live *corev1.ConfigMap
		want func(error) bool
	}{
		"ours":                            {live(true, by("orders", "1")), isNil},
		"an orphan of ours":               {live(true), isNil},
		"nobody's":                        {live(false), isForeign},
		"another resource's":              {live(true, by("invoices", "2")), isForeign},
		"another kind's of the same name": {live(false, by("orders", "2")), isForeign},
		"a deleted one's of our name":     {live(true, by("orders", "2")), isCollected},
	} {
		if err := mayWrite(owner, one.live, "ConfigMap orders-relay"); !one.want(err) {
			t.Errorf("%s: found %v", name, err)
		}
	}
}

func TestProblems(t *testing.T) {
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	child := func(err error) error { return &ChildError{Object: "Deployment a", Err: err} }
	refused, invalid, foreign := conditions.ChildRefused, conditions.ChildInvalid, conditions.ChildOwnedByOther
	for name, one := range map[string]struct {
		err   error
		want  *conditions.ChildProblemKind
		again bool
	}{
		"nothing":         {nil, nil, false},
		"foreign":         {&OwnedByOtherError{Object: "Deployment a"}, &foreign, false},
		"quota":           {child(apierrors.NewForbidden(resource, "a", errors.New("exceeded quota"))), &refused, false},
		"invalid":         {child(apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "a", nil)), &invalid, false},
		"conflict":        {child(apierrors.NewConflict(resource, "a", errors.New("newer"))), nil, true},
		"busy":            {child(apierrors.NewTooManyRequests("slow down", 1)), nil, true},
		"a failing hook":  {child(apierrors.NewInternalError(errors.New("failed calling webhook"))), &refused, false},
		"no answer":       {child(errors.New("connection refused")), nil, true},
		"being collected": {child(ErrBeingCollected), &refused, false},
	} {
		problem, err := ProblemOf(one.err)
		if (err != nil) != one.again || (problem != nil) != (one.want != nil) ||
			problem != nil && problem.Kind != *one.want {
			t.Errorf("%s: found %+v, %v", name, problem, err)
		}
	}
}
