package v1alpha1

import (
	"fmt"
	"time"
)

// Duration is a length of time as Go writes it, such as 2s or 1h30m. It is kept as the user wrote it, so that a
// round trip through this type changes nothing.
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(\.[0-9]{1,3})?(ms|s|m|h))+$`
type Duration string

// Std is the duration as a time.Duration; the empty one is 0. The error is that of a text which the schema refuses.
func (d Duration) Std() (time.Duration, error) {
	if d == "" {
		return 0, nil
	}
	parsed, err := time.ParseDuration(string(d))
	if err != nil {
		return 0, fmt.Errorf("duration: found %q; allowed: numbers with units, such as 2s or 1h30m", string(d))
	}
	return parsed, nil
}

// SecretKeyRef names one key of a Secret in the resource's own namespace. The Secret is mounted as a file into the
// pods that need it, and followed when it is rotated.
type SecretKeyRef struct {
	// name of the Secret, in the namespace of this resource.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name,omitempty"`
	// key within the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^\.?[-_a-zA-Z0-9][-._a-zA-Z0-9]*$`
	Key string `json:"key,omitempty"`
}

// BackOff is how long to wait before another attempt: exponential, with jitter.
// The wait before attempt n+1 is initial × multiplier^(n-1), at most max, varied by ± jitterPercent.
// +kubebuilder:validation:XValidation:rule="!has(self.initial) || !has(self.max) || duration(self.initial) <= duration(self.max)",message="found initial above max; allowed: initial at most max",fieldPath=".initial"
type BackOff struct {
	// initial is the wait before the second attempt, from 1ms to 24h.
	// +optional
	// +default="1s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('24h')",messageExpression="'found ' + self + '; allowed: from 1ms to 24h'"
	Initial Duration `json:"initial,omitempty"`
	// max bounds the wait, from 1ms to 24h.
	// +optional
	// +default="5m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1ms') && duration(self) <= duration('24h')",messageExpression="'found ' + self + '; allowed: from 1ms to 24h'"
	Max Duration `json:"max,omitempty"`
	// multiplier is the factor by which the wait grows from attempt to attempt, 1 to 10.
	// +optional
	// +default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	Multiplier int32 `json:"multiplier,omitempty"`
	// jitterPercent is the share by which each wait varies at random, 0 to 100: wait × (1 ± jitterPercent/100).
	// +optional
	// +default=20
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	JitterPercent *int32 `json:"jitterPercent,omitempty"`
}
