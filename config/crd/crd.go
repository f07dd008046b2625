// Package crd holds the CustomResourceDefinitions of RelayOps, as controller-gen made them from api/v1alpha1.
package crd

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed bases/*.yaml
var bases embed.FS

// YAML is the definitions, one document each, in the order of their file names.
func YAML() ([][]byte, error) {
	names, err := fs.Glob(bases, "bases/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list the embedded definitions: %w", err)
	}
	documents := make([][]byte, len(names))
	for i, name := range names {
		if documents[i], err = bases.ReadFile(name); err != nil {
			return nil, fmt.Errorf("read the embedded definition %s: %w", name, err)
		}
	}
	return documents, nil
}
