package engine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const allowedID = "a letter, then letters, digits, '_' or '-', at most 63 characters"

// ValidID reports whether text can be a node's id or a branch's name.
func ValidID(text string) bool {
	if text == "" || len(text) > 63 {
		return false
	}
	for i := range len(text) {
		c := text[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || (c < '0' || c > '9') && c != '_' && c != '-') {
			return false
		}
	}
	return true
}

func (c *compilation) nodes() {
	c.graph.nodes = make([]vertex, len(c.def.Nodes))
	for i := range c.def.Nodes {
		v := &c.graph.nodes[i]
		v.Node = c.def.Nodes[i]
		where := fmt.Sprintf("nodes[%d]", i)
		c.checkID(v, i, where)
		c.checkType(v, i, where)
		switch v.OnError {
		case "", OnErrorAbort, OnErrorContinue:
		default:
			c.fault(v.ID, where+".onError", quote(v.OnError), `"abort", "continue", or an edge with branch "error"`)
		}
		if t := v.Timeout.Std(); t != 0 && (t < MinTimeout || t > MaxTimeout) {
			c.fault(v.ID, where+".timeout", t.String(), fmt.Sprintf("from %s to %s", MinTimeout, MaxTimeout))
		}
		c.checkClassify(v, where+".classify")
		if v.kind != nil {
			c.checkConfig(v, where+".config")
		}
	}
}

func (c *compilation) checkID(v *vertex, i int, where string) {
	if !ValidID(v.ID) {
		c.fault(clip(v.ID), where+".id", quote(v.ID), allowedID)
	}
	if first, taken := c.graph.index[v.ID]; taken {
		c.fault(clip(v.ID), where+".id", fmt.Sprintf("%s, the id of nodes[%d] too", quote(v.ID), first), "an id of its own")
		return
	}
	c.graph.index[v.ID] = i
}

func (c *compilation) checkType(v *vertex, i int, where string) {
	v.kind = c.types[v.Type]
	if v.kind == nil {
		names := slices.Sorted(maps.Keys(c.types))
		c.fault(clip(v.ID), where+".type", quote(v.Type)+didYouMean(v.Type, names), list(names))
	}
	if v.Type == TypeStart {
		c.starts = append(c.starts, i)
		c.graph.start = c.starts[0]
	}
}

func (c *compilation) checkClassify(v *vertex, where string) {
	if n := len(v.Classify); n > MaxClassRules {
		c.fault(v.ID, where, fmt.Sprintf("%d rules", n), fmt.Sprintf("at most %d", MaxClassRules))
		return
	}
	for i, rule := range v.Classify {
		at := fmt.Sprintf("%s[%d]", where, i)
		if rule.HTTPStatus == "" && rule.Code == "" {
			c.fault(v.ID, at, "neither httpStatus nor code", "at least one of them")
		}
		if rule.HTTPStatus != "" && !validStatusPattern(rule.HTTPStatus) {
			c.fault(v.ID, at+".httpStatus", quote(rule.HTTPStatus), `a status such as "404", or a hundred such as "5xx"`)
		}
		if rule.Code != "" && !slices.Contains(stepCodes, rule.Code) {
			names := make([]string, len(stepCodes))
			for i, code := range stepCodes {
				names[i] = string(code)
			}
			found := quote(string(rule.Code)) + didYouMean(string(rule.Code), names)
			c.fault(v.ID, at+".code", found, list(names))
		}
		switch rule.As {
		case ClassRetry, ClassDeadLetter, ClassCancel:
		default:
			c.fault(v.ID, at+".as", quote(string(rule.As)), `"retry", "dead_letter" or "cancel"`)
		}
	}
}

func validStatusPattern(text string) bool {
	return len(text) == 3 && text[0] >= '1' && text[0] <= '5' &&
		(text[1:] == "xx" || isDigit(text[1]) && isDigit(text[2]))
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// checkConfig holds a config against its type's schema, and lets the type compile it.
func (c *compilation) checkConfig(v *vertex, where string) {
	config := v.Config
	if len(config) == 0 || string(config) == "null" {
		config = json.RawMessage("{}")
	}
	if n := len(config); n > MaxConfigBytes {
		c.fault(v.ID, where, fmt.Sprintf("%d bytes", n), fmt.Sprintf("at most %d", MaxConfigBytes))
		return
	}
	document, err := decodeJSON(config)
	if err != nil {
		c.fault(v.ID, where, "text that is not JSON", "a JSON object")
		return
	}
	if err := measure(document, MaxConfigBytes*2, MaxConfigDepth); err != nil {
		c.fault(v.ID, where, "a document that is too deep, or has a number that is too long",
			fmt.Sprintf("at most %d levels, numbers of at most %d digits", MaxConfigDepth, maxNumberDigits))
		return
	}
	refused := schemaFaults(v.kind, document)
	found := slices.Clone(refused)
	runner, compiled := v.compile(config, document)
	for _, f := range compiled {
		if !covered(refused, f.Field) {
			found = append(found, f)
		}
	}
	slices.SortStableFunc(found, func(a, b FieldError) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Found, b.Found))
	})
	for _, f := range found {
		c.fault(v.ID, JoinField(where, f.Field), f.Found, f.Allowed)
	}
	if len(found) == 0 {
		v.prepare(runner)
	}
	if runner != nil && v.OnError == OnErrorContinue && !slices.Contains(branchesOf(runner), BranchSuccess) {
		c.fault(v.ID, strings.TrimSuffix(where, ".config")+".onError",
			`"continue" on a node without a branch "success" to continue on`, `"abort", or an edge with branch "error"`)
	}
}

// compile lets the type compile a config, also one that its schema refused: the other mistakes are found with it.
func (v *vertex) compile(config json.RawMessage, document any) (Runner, FieldErrors) {
	if _, isObject := document.(map[string]any); !isObject {
		return nil, nil // The schema reports it.
	}
	runner, err := v.kind.Compile(config)
	var faults FieldErrors
	switch {
	case errors.As(err, &faults):
		return runner, faults
	case err != nil:
		return runner, FieldErrors{{Found: "a configuration that the node type refuses", Allowed: err.Error()}}
	default:
		return runner, nil
	}
}

// prepare fills in what follows from the compiled config.
func (v *vertex) prepare(runner Runner) {
	v.runner, v.branches = runner, branchesOf(runner)
	v.timeout = v.Timeout.Std()
}

// limit is the step's timeout where the pipeline's is stepTimeout; 0: none.
func (v *vertex) limit(stepTimeout time.Duration) time.Duration {
	if v.timeout != 0 {
		return v.timeout
	}
	limited, hasDefault := v.runner.(TimeLimited)
	if !hasDefault {
		return stepTimeout
	}
	if byDefault := limited.DefaultTimeout(); stepTimeout == 0 || byDefault < stepTimeout {
		return byDefault
	}
	return stepTimeout
}

// covered reports whether a fault at field was already found at the same place, or around it.
func covered(faults FieldErrors, field string) bool {
	for _, f := range faults {
		if f.Field == field || f.Field == "" {
			return true
		}
		if rest, below := strings.CutPrefix(field, f.Field); below && (rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// branchesOf are the branches that edges may name on a node with this runner.
func branchesOf(runner Runner) []string {
	own := runner.Branches()
	if own == nil {
		own = []string{BranchSuccess}
	}
	return append(slices.Clone(own), BranchError)
}
