package crd_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/yaml"

	"github.com/relayops/relayops/config/crd"
)

func load(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	documents, err := crd.YAML()
	if err != nil {
		t.Fatal(err)
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, document := range documents {
		var one apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(document, &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, &one)
	}
	if len(all) != 2 {
		t.Fatalf("found %d definitions, want 2", len(all))
	}
	return all
}

// The API server's own checks: structural schema, defaults that fit it, CEL rules that compile within their cost
// limits.
func TestAPIServerAcceptsDefinitions(t *testing.T) {
	for _, one := range load(t) {
		t.Run(one.Spec.Names.Kind, func(t *testing.T) {
			apiextensionsv1.SetDefaults_CustomResourceDefinition(one)
			apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&one.Spec)
			var internal apiextensions.CustomResourceDefinition
			err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(
				one, &internal, nil)
			if err != nil {
				t.Fatal(err)
			}
			internal.Status.StoredVersions = []string{"v1alpha1"}
			for _, fault := range validation.ValidateCustomResourceDefinition(context.Background(), &internal) {
				t.Error(fault)
			}
		})
	}
}

// kubectl apply keeps the whole object in an annotation, and annotations are limited to 256 KiB in all.
func TestDefinitionsFitAnAnnotation(t *testing.T) {
	documents, err := crd.YAML()
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range documents {
		text, err := yaml.YAMLToJSON(document)
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 240<<10 {
			t.Errorf("found %d bytes of JSON; allowed: at most 240 KiB", len(text))
		}
	}
}

// Every list, string and map that a user can write is bounded. Kubernetes' own types below podTemplate are as
// Kubernetes has them.
func TestEverythingIsBounded(t *testing.T) {
	for _, one := range load(t) {
		schema := one.Spec.Versions[0].Schema.OpenAPIV3Schema
		for _, part := range []string{"spec", "status"} {
			walk(schema.Properties[part], part, func(path string, at apiextensionsv1.JSONSchemaProps) {
				if name, bounded := unbounded(at); !bounded && !isKubernetesOwn(path) {
					t.Errorf("%s %s: found no bound of a %s", one.Spec.Names.Kind, path, name)
				}
			})
		}
	}
}

func isKubernetesOwn(path string) bool {
	_, below, found := strings.Cut(path, "spec.podTemplate.")
	return strings.HasPrefix(path, "status.conditions[]") || found && strings.ContainsAny(below, ".[")
}

func unbounded(at apiextensionsv1.JSONSchemaProps) (name string, bounded bool) {
	switch {
	case at.XIntOrString: // a quantity: its pattern is Kubernetes' own, and a rule bounds its value
		return "quantity", len(at.XValidations) > 0
	case at.Type == "string":
		return "string", at.MaxLength != nil || len(at.Enum) > 0 || at.Format == "date-time"
	case at.Type == "array":
		return "list", at.MaxItems != nil
	case at.Type == "object" && at.AdditionalProperties != nil:
		return "map", at.MaxProperties != nil
	case at.Type == "integer":
		return "number", at.Minimum != nil
	default:
		return "", true
	}
}

func walk(at apiextensionsv1.JSONSchemaProps, path string, visit func(string, apiextensionsv1.JSONSchemaProps)) {
	visit(path, at)
	for name, child := range at.Properties {
		walk(child, path+"."+name, visit)
	}
	if at.Items != nil && at.Items.Schema != nil {
		walk(*at.Items.Schema, path+"[]", visit)
	}
	if at.AdditionalProperties != nil && at.AdditionalProperties.Schema != nil {
		walk(*at.AdditionalProperties.Schema, path+"{}", visit)
	}
}

// A rule's message says what was found and what is allowed: internal/manifest takes it apart there.
func TestRulesSayWhatIsAllowed(t *testing.T) {
	for _, one := range load(t) {
		walk(*one.Spec.Versions[0].Schema.OpenAPIV3Schema, "", func(path string, at apiextensionsv1.JSONSchemaProps) {
			for _, rule := range at.XValidations {
				text := rule.Message + rule.MessageExpression
				immutable := strings.Contains(rule.Rule, "oldSelf") && strings.Contains(text, "immutable; allowed: ")
				if !strings.Contains(text, "; allowed: ") || !strings.Contains(text, "found ") && !immutable {
					t.Errorf("%s%s: found the message %q; allowed: found …; allowed: …", one.Spec.Names.Kind, path, text)
				}
			}
		})
	}
}

// What the operator, kubectl and autoscalers rely on.
func TestShapeOfTheDefinitions(t *testing.T) {
	for _, one := range load(t) {
		version := one.Spec.Versions[0]
		if !slices.Contains(one.Spec.Names.Categories, "relayops") {
			t.Errorf("%s: found categories %v; want relayops among them", one.Name, one.Spec.Names.Categories)
		}
		if version.Subresources == nil || version.Subresources.Status == nil || version.Subresources.Scale == nil {
			t.Fatalf("%s: found no subresources status and scale", one.Name)
		}
		if got := version.Subresources.Scale.SpecReplicasPath; got != ".spec.replicas" {
			t.Errorf("%s: found scale path %s", one.Name, got)
		}
		var columns []string
		for _, column := range version.AdditionalPrinterColumns {
			columns = append(columns, column.Name)
		}
		for _, want := range []string{"Ready", "Reason", "Replicas", "Suspended", "Age"} {
			if !slices.Contains(columns, want) {
				t.Errorf("%s: found columns %v; want %s among them", one.Name, columns, want)
			}
		}
	}
}

// The reference names every field of a specification, with its default.
func TestDocumentationIsComplete(t *testing.T) {
	text, err := os.ReadFile("../../docs/manifests.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range load(t) {
		_, section, _ := strings.Cut(string(text), "\n## "+one.Spec.Names.Kind+"\n")
		_, pods, _ := strings.Cut(string(text), "\n## podTemplate\n")
		section, _, _ = strings.Cut(section, "\n## ")
		pods, _, _ = strings.Cut(pods, "\n## ")
		spec := one.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		walk(spec, "", func(path string, at apiextensionsv1.JSONSchemaProps) {
			field := strings.TrimPrefix(path, ".")
			if field == "" || strings.HasSuffix(field, "[]") || strings.HasSuffix(field, "{}") ||
				strings.Contains(field, "SecretRef.") || isKubernetesOwn("spec."+field) {
				return
			}
			row := "\n| `" + field + "` | "
			if at.Default != nil && string(at.Default.Raw) != "{}" {
				row += "`" + strings.Trim(string(at.Default.Raw), `"`) + "` |"
			}
			if !strings.Contains(section+pods, row) {
				t.Errorf("docs/manifests.md: found no row %q of %s", row[1:], one.Spec.Names.Kind)
			}
		})
	}
}
