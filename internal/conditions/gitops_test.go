package conditions_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/config/crd"
)

// object is the resource as a GitOps tool reads it.
func (s scenario) object(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "orders", Namespace: "shop", Generation: 7}
	if s.deleted {
		meta.DeletionTimestamp = &metav1.Time{Time: now}
	}
	if s.outdated {
		meta.Generation++
	}
	found := s.result(s.before, now).Conditions
	var typed any
	if s.pipeline {
		typed = &v1alpha1.Pipeline{ObjectMeta: meta, Status: v1alpha1.PipelineStatus{ObservedGeneration: 7, Conditions: found}}
	} else {
		typed = &v1alpha1.OutboxRelay{ObjectMeta: meta, Status: v1alpha1.OutboxRelayStatus{ObservedGeneration: 7, Conditions: found}}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetAPIVersion(v1alpha1.GroupVersion.String())
	object.SetKind(v1alpha1.KindOutboxRelay)
	if s.pipeline {
		object.SetKind(v1alpha1.KindPipeline)
	}
	return object
}

// Flux, and whatever else reads kstatus.
func TestKstatus(t *testing.T) {
	for _, one := range scenarios() {
		t.Run(one.name, func(t *testing.T) { wantKstatus(t, one.object(t), one.kstatus) })
	}
}

func wantKstatus(t *testing.T, object *unstructured.Unstructured, want string) {
	t.Helper()
	result, err := status.Compute(object)
	if err != nil {
		t.Fatal(err)
	}
	if string(result.Status) != want {
		t.Errorf("found %s (%s), want %s", result.Status, result.Message, want)
	}
}

func TestArgoCD(t *testing.T) {
	for _, one := range scenarios() {
		t.Run(one.name, func(t *testing.T) { wantHealth(t, one.object(t), one.argo) })
	}
}

// wantHealth runs the health check as Argo CD does: the object is the global obj, and the script returns a table.
func wantHealth(t *testing.T, object *unstructured.Unstructured, want string) {
	t.Helper()
	script, err := os.ReadFile("../../config/argocd/health.lua")
	if err != nil {
		t.Fatal(err)
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	lua.OpenBase(state)
	state.SetGlobal("obj", luaValue(state, object.Object))
	if err := state.DoString(string(script)); err != nil {
		t.Fatal(err)
	}
	health, found := state.Get(-1).(*lua.LTable)
	if !found {
		t.Fatalf("found %s; want a table", state.Get(-1).Type())
	}
	got, message := lua.LVAsString(health.RawGetString("status")), lua.LVAsString(health.RawGetString("message"))
	if got != want || message == "" {
		t.Errorf("found %s (%q), want %s with a message", got, message, want)
	}
}

func luaValue(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, field := range value {
			table.RawSetString(key, luaValue(state, field))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, item := range value {
			table.Append(luaValue(state, item))
		}
		return table
	case string:
		return lua.LString(value)
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	default:
		return lua.LNil
	}
}

// A resource that no operator has looked at is not taken for ready: the schema gives it a status.
func TestNewResources(t *testing.T) {
	documents, err := crd.YAML()
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range documents {
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(document, &definition); err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetAPIVersion(v1alpha1.GroupVersion.String())
		object.SetKind(definition.Spec.Names.Kind)
		object.SetGeneration(1)
		var defaulted map[string]any
		raw := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Default
		if raw == nil {
			t.Fatalf("%s: found no default of status", definition.Name)
		}
		if err := json.Unmarshal(raw.Raw, &defaulted); err != nil {
			t.Fatal(err)
		}
		object.Object["status"] = defaulted
		wantKstatus(t, object, "InProgress")
		wantHealth(t, object, "Progressing")
		delete(object.Object, "status") // Argo CD may read it before the default is there.
		wantHealth(t, object, "Progressing")
	}
}

// The ConfigMap that is shipped for Argo CD holds the check that was tested, for both kinds.
func TestConfigMapOfArgoCD(t *testing.T) {
	script, err := os.ReadFile("../../config/argocd/health.lua")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../config/argocd/argocd-cm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var patch struct{ Data map[string]string }
	if err := yaml.Unmarshal(text, &patch); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{v1alpha1.KindOutboxRelay, v1alpha1.KindPipeline} {
		if patch.Data["resource.customizations.health.relayops.io_"+kind] != string(script) {
			t.Errorf("%s: found another check than health.lua", kind)
		}
	}
}
