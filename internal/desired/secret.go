package desired

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/naming"
)

// secretDir is where the Secrets are: the key K of the Secret S is the file secretDir/S/K.
const secretDir = "/etc/relayops/secrets" //nolint:gosec // a directory, and no secret

// secretsOf are the Secret keys that a relay, or a worker of it, reads: sorted, each once.
func secretsOf(relay *v1alpha1.OutboxRelay) []v1alpha1.SecretKeyRef {
	database, nats := relay.Spec.Database, relay.Spec.NATS
	refs := []*v1alpha1.SecretKeyRef{
		&database.URLSecretRef, database.ListenURLSecretRef,
		nats.CredsSecretRef, nats.UserSecretRef, nats.PasswordSecretRef, nats.TokenSecretRef,
	}
	if nats.TLS != nil {
		refs = append(refs, nats.TLS.CASecretRef, nats.TLS.CertSecretRef, nats.TLS.KeySecretRef)
	}
	var found []v1alpha1.SecretKeyRef
	for _, ref := range refs {
		if ref != nil {
			found = append(found, *ref)
		}
	}
	slices.SortFunc(found, func(a, b v1alpha1.SecretKeyRef) int {
		return slices.Compare([]string{a.Name, a.Key}, []string{b.Name, b.Key})
	})
	return slices.Compact(found)
}

// secretVolumes mount the Secrets, each once and only the keys that are read. They are optional: a daemon starts
// without them, says which is missing, and follows when it appears.
func secretVolumes(refs []v1alpha1.SecretKeyRef) []corev1.Volume {
	var volumes []corev1.Volume
	for _, ref := range refs {
		item := corev1.KeyToPath{Key: ref.Key, Path: ref.Key}
		if last := len(volumes) - 1; last >= 0 && volumes[last].Secret.SecretName == ref.Name {
			volumes[last].Secret.Items = append(volumes[last].Secret.Items, item)
			continue
		}
		volumes = append(volumes, corev1.Volume{
			Name: naming.SecretVolume(ref.Name),
			VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
				SecretName: ref.Name, Items: []corev1.KeyToPath{item},
				DefaultMode: new(fileMode), Optional: new(true),
			}},
		})
	}
	return volumes
}

// secretMounts have whole directories: a file that is mounted by itself would not follow a rotated Secret.
func secretMounts(refs []v1alpha1.SecretKeyRef) []corev1.VolumeMount {
	var mounts []corev1.VolumeMount
	for _, volume := range secretVolumes(refs) {
		mounts = append(mounts, corev1.VolumeMount{
			Name: volume.Name, MountPath: path.Join(secretDir, volume.Secret.SecretName), ReadOnly: true,
		})
	}
	return mounts
}
