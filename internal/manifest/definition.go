package manifest

import (
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/relayops/relayops/config/crd"
)

// definition is a kind as the API server would serve it.
type definition struct {
	structural *schema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
	namespaced bool
}

// definitions are compiled once: the CEL rules take some milliseconds.
var definitions = sync.OnceValues(func() (map[string]definition, error) {
	documents, err := crd.YAML()
	if err != nil {
		return nil, err
	}
	kinds := make(map[string]definition, len(documents))
	for _, document := range documents {
		var one apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(document, &one); err != nil {
			return nil, fmt.Errorf("an embedded CustomResourceDefinition: %w", err)
		}
		compiled, err := compile(&one)
		if err != nil {
			return nil, fmt.Errorf("CustomResourceDefinition %s: %w", one.Name, err)
		}
		kinds[one.Spec.Names.Kind] = compiled
	}
	return kinds, nil
})

func compile(crd *apiextensionsv1.CustomResourceDefinition) (definition, error) {
	if n := len(crd.Spec.Versions); n != 1 {
		return definition{}, fmt.Errorf("found %d versions; allowed: one", n)
	}
	var props apiextensions.JSONSchemaProps
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil)
	if err != nil {
		return definition{}, fmt.Errorf("convert the schema: %w", err)
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		return definition{}, fmt.Errorf("make the schema structural: %w", err)
	}
	if err := defaulting.PruneDefaults(structural); err != nil {
		return definition{}, fmt.Errorf("prune the defaults: %w", err)
	}
	validator, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		return definition{}, fmt.Errorf("make the validator: %w", err)
	}
	return definition{
		structural: structural,
		validator:  validator,
		rules:      cel.NewValidator(structural, true, celconfig.PerCallLimit),
		namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
	}, nil
}
