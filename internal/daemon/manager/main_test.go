package manager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

const (
	operatorNamespace = "relayops-system"
	operatorUser      = "relayops-operator"
)

// world is the API server that all tests share, and the operator that runs against it with the rights of config/rbac.
var world struct {
	admin    client.Client
	operator *rest.Config
	auditLog string
	status   *stub
}

func TestMain(m *testing.M) {
	code, err := withAPIServer(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withAPIServer(m *testing.M) (code int, err error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return 1, errors.New("these tests need a Kubernetes API server: make test, or " +
			"KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test ./internal/daemon/manager")
	}
	dir, err := os.MkdirTemp("", "relayops-envtest-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	world.auditLog = filepath.Join(dir, "audit.log")
	environment := &envtest.Environment{CRDDirectoryPaths: []string{"../../../config/crd/bases"}, Scheme: Scheme()}
	arguments := environment.ControlPlane.GetAPIServer().Configure()
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return 1, err
	}
	arguments.Set("audit-policy-file", policy).Set("audit-log-path", world.auditLog)
	admin, err := environment.Start()
	if err != nil {
		return 1, fmt.Errorf("start the API server: %w", err)
	}
	defer func() { err = errors.Join(err, environment.Stop()) }()
	admin.QPS, admin.Burst = 1000, 1000
	if world.admin, err = client.New(admin, client.Options{Scheme: Scheme()}); err != nil {
		return 1, err
	}
	user, err := environment.AddUser(envtest.User{Name: operatorUser}, nil)
	if err != nil {
		return 1, err
	}
	world.operator = user.Config()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if err := install(ctx); err != nil {
		return 1, err
	}
	go standIn(ctx)
	return m.Run(), nil
}

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: [` + operatorUser + `]
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`

// install makes what config/default installs, but for the operator's pods.
func install(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}}
	if err := world.admin.Create(ctx, namespace); err != nil {
		return err
	}
	for _, name := range []string{"role.yaml", "role_binding.yaml", "own.yaml", "webhook.yaml"} {
		content, err := os.ReadFile(filepath.Join("../../../config/rbac", name))
		if err != nil {
			return err
		}
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			if err := installOne(ctx, document); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

func installOne(ctx context.Context, document string) error {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(document), &kind); err != nil || kind.Kind == "" {
		return err
	}
	user := []rbacv1.Subject{{Kind: "User", APIGroup: "rbac.authorization.k8s.io", Name: operatorUser}}
	var object client.Object
	switch kind.Kind {
	case "ClusterRole":
		object = &rbacv1.ClusterRole{}
	case "Role":
		object = &rbacv1.Role{}
	case "ClusterRoleBinding":
		object = &rbacv1.ClusterRoleBinding{}
	case "RoleBinding":
		object = &rbacv1.RoleBinding{}
	default:
		return fmt.Errorf("found a %s, which this test does not know", kind.Kind)
	}
	if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
		return err
	}
	switch binding := object.(type) {
	case *rbacv1.ClusterRoleBinding:
		binding.Subjects = user
	case *rbacv1.RoleBinding:
		binding.Namespace, binding.Subjects = operatorNamespace, user
	case *rbacv1.Role:
		binding.Namespace = operatorNamespace
	}
	return world.admin.Create(ctx, object)
}

// standIn does what Kubernetes does for a Deployment: it has its pods in no time.
func standIn(ctx context.Context) {
	for ctx.Err() == nil {
		var list appsv1.DeploymentList
		if err := world.admin.List(ctx, &list); err == nil {
			for i := range list.Items {
				makeAvailable(ctx, &list.Items[i])
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func makeAvailable(ctx context.Context, deployment *appsv1.Deployment) {
	if deployment.Status.ObservedGeneration == deployment.Generation || deployment.Labels["test"] == "stuck" {
		return
	}
	replicas := *deployment.Spec.Replicas
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation, Replicas: replicas, UpdatedReplicas: replicas,
		ReadyReplicas: replicas, AvailableReplicas: replicas,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	_ = world.admin.Status().Update(ctx, deployment) // A conflict comes by again.
}

// stub answers status calls by the host that they go to.
type stub struct {
	answers atomic.Pointer[map[string]string]
}

func (s *stub) set(host, body string) {
	for {
		before := s.answers.Load()
		after := map[string]string{}
		if before != nil {
			maps.Copy(after, *before)
		}
		after[host] = body
		if s.answers.CompareAndSwap(before, &after) {
			return
		}
	}
}

func (s *stub) RoundTrip(request *http.Request) (*http.Response, error) {
	body := `{"state": "Running"}`
	if answers := s.answers.Load(); answers != nil && (*answers)[request.URL.Hostname()] != "" {
		body = (*answers)[request.URL.Hostname()]
	}
	code := http.StatusOK
	if !strings.HasPrefix(request.Header.Get("Authorization"), "Bearer ") {
		code = http.StatusUnauthorized
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(body)), Request: request,
	}, nil
}

// startOperator runs the operator as config/default does, with the change that is given, until the test ends.
func startOperator(t *testing.T, change func(*Config)) {
	t.Helper()
	stub := &stub{}
	c := Config{
		Namespace: operatorNamespace, Image: "relayops:test", PodMonitors: PodMonitorsAuto, MetricsAddress: "0",
		HealthAddress: "0", REST: world.operator, StatusTransport: stub, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&c)
	}
	if os.Getenv("RELAYOPS_TEST_LOG") != "" {
		c.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	world.status = stub
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, c) }()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the operator ended: %v", err)
			}
		case <-time.After(30 * time.Second):
			t.Error("the operator does not end")
		}
	})
}

// withWebhook has the API server call the operator at a port of this machine.
func withWebhook(t *testing.T) func(*Config) {
	t.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile("../../../config/webhook/manifests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	configuration := &admissionv1.ValidatingWebhookConfiguration{}
	if err := yaml.UnmarshalStrict(content, configuration); err != nil {
		t.Fatal(err)
	}
	configuration.Name = "relayops"
	for i := range configuration.Webhooks {
		client := &configuration.Webhooks[i].ClientConfig
		url := fmt.Sprintf("https://localhost:%d%s", port, *client.Service.Path)
		client.Service, client.URL = nil, &url
	}
	if err := world.admin.Create(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := world.admin.Delete(context.Background(), configuration); err != nil {
			t.Error(err)
		}
	})
	return func(c *Config) {
		c.Webhook = Webhook{
			Enabled: true, Certificates: CertificatesSelf, Service: "relayops-webhook", Configuration: "relayops",
			Host: "localhost", Port: port,
		}
	}
}

// writes are what the operator wrote since the audit log had that many bytes, Leases and Events apart.
func writes(t *testing.T, since int64) []string {
	t.Helper()
	content, err := os.ReadFile(world.auditLog)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.SplitSeq(string(content[since:]), "\n") {
		var entry struct {
			Verb      string `json:"verb"`
			ObjectRef struct {
				Resource, Namespace, Name, Subresource string
			} `json:"objectRef"`
		}
		if json.Unmarshal([]byte(line), &entry) != nil || entry.Verb == "" || entry.ObjectRef.Resource == "leases" {
			continue
		}
		ref := entry.ObjectRef
		found = append(found, fmt.Sprintf("%s %s/%s %s/%s", entry.Verb, ref.Resource, ref.Subresource, ref.Namespace, ref.Name))
	}
	return found
}

func auditSize(t *testing.T) int64 {
	t.Helper()
	info, err := os.Stat(world.auditLog)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
