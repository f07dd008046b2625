package webhook

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/relayops/relayops/api/v1alpha1"
)

// Register has the manager's webhook server validate both kinds.
func Register(manager ctrl.Manager) error {
	relays := &OutboxRelays{Reader: manager.GetClient()}
	err := ctrl.NewWebhookManagedBy(manager, &v1alpha1.OutboxRelay{}).WithValidator(relays).Complete()
	if err != nil {
		return fmt.Errorf("webhook of OutboxRelays: %w", err)
	}
	pipelines := &Pipelines{Reader: manager.GetClient()}
	err = ctrl.NewWebhookManagedBy(manager, &v1alpha1.Pipeline{}).WithValidator(pipelines).Complete()
	if err != nil {
		return fmt.Errorf("webhook of Pipelines: %w", err)
	}
	return nil
}
