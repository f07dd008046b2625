package manifest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/relayops/relayops/api/v1alpha1"
)

// DefaultNamespace is where an object without a namespace belongs, as with kubectl.
const DefaultNamespace = metav1.NamespaceDefault

const (
	// maxProblems bounds what is reported of one object.
	maxProblems = 100
	// maxCounted bounds what is looked at: finding lines takes time.
	maxCounted = 1000
)

func (r Relay) name() string {
	return Name(v1alpha1.KindOutboxRelay, r.Object.Namespace, r.Object.Name)
}

func (p Pipeline) name() string {
	return Name(v1alpha1.KindPipeline, p.Object.Namespace, p.Object.Name)
}

// resource takes an object of our own group through the API server's steps, and adds it to the set if it can be
// decoded at all.
func (l *loading) resource(d document, kind string, object map[string]any) {
	source := d.source()
	kinds, err := definitions()
	if err != nil {
		// The definitions are compiled in and tested; there is nothing that a user could do.
		l.problems = append(l.problems, source.Problem(d.name(), "", clip(err.Error()), "a program that was built well"))
		return
	}
	definition, known := kinds[kind]
	if !known {
		l.problems = append(l.problems, source.Problem(d.name(), "kind", quote(kind),
			strings.Join(slices.Sorted(maps.Keys(kinds)), " or ")))
		return
	}
	delete(object, "status") // as the API server does when an object is created
	check := checking{definition: definition, object: object, kind: kind, source: source, document: d.name()}
	check.run()
	source.Faulty = len(check.problems) > 0
	l.problems = append(l.problems, check.bounded()...)
	switch kind {
	case v1alpha1.KindOutboxRelay:
		var typed v1alpha1.OutboxRelay
		if check.decode(&typed) {
			l.set.Relays = append(l.set.Relays, Relay{Source: source, Object: &typed})
		}
	case v1alpha1.KindPipeline:
		var typed v1alpha1.Pipeline
		if check.decode(&typed) {
			l.set.Pipelines = append(l.set.Pipelines, Pipeline{Source: source, Object: &typed})
		}
	}
}

// checking is one object on its way.
type checking struct {
	definition definition
	object     map[string]any
	kind       string
	source     Source
	document   string
	problems   Problems
	// uncounted are the mistakes beyond maxCounted.
	uncounted int
}

func (c *checking) run() {
	c.metadata()
	unknown := pruning.PruneWithOptions(c.object, c.definition.structural, true,
		schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range unknown {
		c.unknownField(path)
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(c.object, c.definition.structural)
	defaulting.Default(c.object, c.definition.structural)

	object, faults := withoutExcess(nil, c.object, c.definition.structural)
	faults = append(faults, withoutComposites(validation.ValidateCustomResource(nil, object, c.definition.validator))...)
	faults = append(faults, listtype.ValidateListSetsAndMaps(nil, c.definition.structural, object.(map[string]any))...)
	if !slices.ContainsFunc(faults, blocksRules) {
		// The rules cannot be stopped from outside, and need not be: their cost is limited.
		more, _ := c.definition.rules.Validate(context.Background(), nil, c.definition.structural, c.object, nil,
			celconfig.RuntimeCELCostBudget)
		if len(faults)+len(c.problems) > 0 {
			// A rule fails to evaluate where one of its fields is faulty: that is reported already.
			more = slices.DeleteFunc(more, func(e *field.Error) bool { return strings.Contains(e.Detail, evaluationFailed) })
		}
		faults = append(faults, more...)
	}
	for _, fault := range withoutElements(faults) {
		c.fault(fault)
	}
}

// withoutElements drops the faults of what stands in a list or a map that is too long: it has to be cut anyway.
func withoutElements(faults field.ErrorList) field.ErrorList {
	var long []string
	for _, fault := range faults {
		if fault.Type == field.ErrorTypeTooMany {
			long = append(long, fault.Field+"[", fault.Field+".")
		}
	}
	return slices.DeleteFunc(faults, func(fault *field.Error) bool {
		return slices.ContainsFunc(long, func(prefix string) bool { return strings.HasPrefix(fault.Field, prefix) })
	})
}

// withoutComposites drops faults that only say that another one made an alternative fail: they have no field.
func withoutComposites(faults field.ErrorList) field.ErrorList {
	noField := func(fault *field.Error) bool { return fault.Field == nilField }
	if named := slices.DeleteFunc(slices.Clone(faults), noField); len(named) > 0 {
		return named
	}
	return faults
}

// nilField is how a fault of the whole object is printed.
var nilField = (*field.Path)(nil).String()

// evaluationFailed marks a rule that could not be evaluated, as the API server words it.
const evaluationFailed = " evaluating rule: "

// blocksRules tells which faults keep the API server from evaluating CEL rules: the rules' cost was estimated for
// objects of the right types and sizes.
func blocksRules(fault *field.Error) bool {
	switch fault.Type {
	case field.ErrorTypeNotFound, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany,
		field.ErrorTypeTypeInvalid:
		return true
	default:
		return false
	}
}

// metadata checks the standard metadata, and fills the namespace in.
func (c *checking) metadata() {
	meta, found, unknown, err := objectmeta.GetObjectMetaWithOptions(c.object,
		objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		c.add("metadata", clip(err.Error()), "the standard metadata of an object")
		// Without it nothing would name the object; the rest is checked all the same.
		meta, found = &metav1.ObjectMeta{Name: "unnamed"}, true
	} else {
		for _, path := range unknown {
			c.add(path, "a field that does not exist", "the fields of metadata, such as name, namespace and labels")
		}
	}
	if !found {
		meta = &metav1.ObjectMeta{}
	}
	if meta.Namespace == "" {
		meta.Namespace = DefaultNamespace
	}
	if err == nil {
		for _, fault := range apivalidation.ValidateObjectMeta(meta, c.definition.namespaced,
			apivalidation.NameIsDNSSubdomain, field.NewPath("metadata")) {
			c.metadataFault(fault)
		}
	}
	if err := objectmeta.SetObjectMeta(c.object, meta); err != nil {
		c.add("metadata", clip(err.Error()), "the standard metadata of an object")
	}
}

func (c *checking) metadataFault(fault *field.Error) {
	if fault.Type == field.ErrorTypeRequired {
		c.add(fault.Field, "nothing", "a name of lower-case letters, digits, '-' and '.'")
		return
	}
	c.add(fault.Field, describe(fault.BadValue), clip(fault.Detail))
}

// name of the object in problems: what metadata says, or else where it stands.
func (c *checking) name() string {
	metadata, _ := c.object["metadata"].(map[string]any)
	name, namespace := text(metadata, "name"), text(metadata, "namespace")
	if name == "" {
		return c.kind + " in " + c.document
	}
	if namespace == "" {
		namespace = DefaultNamespace
	}
	return Name(c.kind, clip(namespace), clip(name))
}

func (c *checking) add(path, found, allowed string) {
	if len(c.problems) >= maxCounted {
		c.uncounted++
		return
	}
	problem := c.source.Problem(c.name(), path, found, allowed)
	if !slices.Contains(c.problems, problem) {
		c.problems = append(c.problems, problem)
	}
}

// bounded is the problems, in the order of their lines, cut off at the limit with a word of it.
func (c *checking) bounded() Problems {
	sorted := Problems(nil).Merge(c.problems)
	if len(sorted) <= maxProblems {
		return sorted
	}
	rest := len(sorted) - maxProblems + c.uncounted
	return append(sorted[:maxProblems], c.source.Problem(c.name(), "", fmt.Sprintf("%d more mistakes", rest), "none"))
}

// decode reports whether the object fits the Go type; it always does where no problem was found.
func (c *checking) decode(into any) bool {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(c.object, into) == nil
}
