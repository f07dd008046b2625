package manager

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/relayops/relayops/api/v1alpha1"
	"github.com/relayops/relayops/internal/apply"
)

// lookAgain is how often missing CustomResourceDefinitions are looked for.
const lookAgain = 5 * time.Second

// awaitKinds returns when the API server knows our kinds. Until then it says what is missing and what to do.
func awaitKinds(ctx context.Context, reset func() (meta.RESTMapper, error), log *slog.Logger) error {
	told := ""
	for {
		mapper, err := reset()
		missing := ""
		if err == nil {
			missing, err = missingKind(mapper)
		}
		if err == nil && missing == "" {
			return nil
		}
		found := fmt.Sprint(missing, err)
		if found != told {
			log.Warn("waiting for the CustomResourceDefinitions: helm upgrade --set crds.install=true, or "+
				"kubectl apply --server-side -k config/crd", "missing", missing, "error", err)
			told = found
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookAgain):
		}
	}
}

func missingKind(mapper meta.RESTMapper) (string, error) {
	for _, kind := range []string{v1alpha1.KindOutboxRelay, v1alpha1.KindPipeline} {
		known, err := knows(mapper, v1alpha1.GroupVersion.WithKind(kind))
		if err != nil || !known {
			return kind, err
		}
	}
	return "", nil
}

// hasPodMonitors: the Prometheus operator's API is there.
func hasPodMonitors(mapper meta.RESTMapper) (bool, error) { return knows(mapper, apply.PodMonitor) }

func knows(mapper meta.RESTMapper, kind schema.GroupVersionKind) (bool, error) {
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	return err == nil, err
}
