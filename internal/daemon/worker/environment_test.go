package worker

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/relayops/relayops/internal/runspec"
)

const pipeline = `{"nodes": [{"id": "start", "type": "start"},
	{"id": "slow", "type": "http-request", "timeout": "2m", "config": {"method": "POST", "url": "https://erp.example.com"}},
	{"id": "ok", "type": "set-status", "config": {"statusTag": "success"}}],
	"edges": [{"from": "start", "to": "slow"}, {"from": "slow", "to": "ok"}]}`

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.json")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func setAll(t *testing.T, variables map[string]string) {
	t.Helper()
	for name, value := range variables {
		t.Setenv(name, value)
	}
}

func TestEnvironmentDefaults(t *testing.T) {
	setAll(t, map[string]string{
		"DATABASE_URL": "postgres://u:secret@db/shop", "PIPELINE_FILE": write(t, pipeline),
		"RELAYOPS_PIPELINE_KEY": "shop/default/order-post.v1",
	})
	spec, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	if spec.Concurrency != 4 || spec.MaxAttempts != 5 || spec.MaxDeliver != 15 || spec.Suspended {
		t.Errorf("concurrency %d, attempts %d, deliveries %d, suspended %t",
			spec.Concurrency, spec.MaxAttempts, spec.MaxDeliver, spec.Suspended)
	}
	want := runspec.Subscription{Trigger: "order.post", EventTypes: []string{"OrderConfirmed"}, StartFrom: "Now"}
	if !reflect.DeepEqual(spec.Subscription, want) {
		t.Errorf("subscription: %+v", spec.Subscription)
	}
	if spec.Consumer != "shop_default_order-post=2Ev1" {
		t.Errorf("consumer: %s", spec.Consumer)
	}
	// The longest step, and five seconds.
	if spec.GracePeriod != runspec.Duration(2*time.Minute+5*time.Second) {
		t.Errorf("grace period: %s", spec.GracePeriod)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "secret") {
		t.Error("the specification holds the password")
	}
}

func TestEnvironment(t *testing.T) {
	setAll(t, map[string]string{
		"DATABASE_URL": "postgres://u@db/shop", "PIPELINE_FILE": write(t, pipeline), "WORKER_TRIGGER": "event.InvoicePaid",
		"WORKER_ORGS": "acme,globex", "WORKER_START_FROM": "Time", "WORKER_START_TIME": "2026-05-01T00:00:00Z",
		"WORKER_ENABLED": "false", "WORKER_DEADLINE_MS": "60000", "HTTP_ALLOWED_CIDRS": "10.0.0.0/8",
		"EVENT_INVOICEPAID_ATTEMPTS": "20", "EVENT_INVOICEPAID_CONCURRENCY": "7", "ORDER_POST_ATTEMPTS": "9",
	})
	spec, err := Load("")
	if err != nil {
		t.Fatal(err)
	}
	if spec.MaxAttempts != 20 || spec.MaxDeliver <= 20 || spec.Concurrency != 7 || !spec.Suspended {
		t.Errorf("attempts %d, deliveries %d, concurrency %d, suspended %t",
			spec.MaxAttempts, spec.MaxDeliver, spec.Concurrency, spec.Suspended)
	}
	s := spec.Subscription
	if s.EventTypes[0] != "InvoicePaid" || len(s.Orgs) != 2 || s.StartTime == nil || s.StartTime.Year() != 2026 {
		t.Errorf("subscription: %+v", s)
	}
	if spec.Deadline != runspec.Duration(time.Minute) || spec.HTTP.AllowedCIDRs[0] != "10.0.0.0/8" {
		t.Errorf("deadline %s, policy %+v", spec.Deadline, spec.HTTP)
	}
}

func TestEnvironmentMistakes(t *testing.T) {
	if _, err := Load(""); err == nil || !strings.Contains(err.Error(), "DATABASE_URL: found nothing, allowed: ") ||
		!strings.Contains(err.Error(), "PIPELINE_FILE: found nothing, allowed: ") {
		t.Errorf("nothing set: %v", err)
	}
	setAll(t, map[string]string{"DATABASE_URL": "postgres://u@db/shop", "PIPELINE_FILE": write(t, `{"node": []}`)})
	if _, err := Load(""); err == nil || !strings.Contains(err.Error(), `unknown field "node"`) {
		t.Errorf("a misspelt pipeline: %v", err)
	}
	setAll(t, map[string]string{
		"PIPELINE_FILE": write(t, pipeline), "ORDER_POST_ATTEMPTS": "0", "ORDER_POST_CONCURRENCY": "many",
	})
	_, err := Load("")
	for _, want := range []string{
		`ORDER_POST_ATTEMPTS: found "0", allowed: a whole number from 1 to 100`,
		`ORDER_POST_CONCURRENCY: found "many", allowed: a whole number from 1 to 1000`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %s: %v", want, err)
		}
	}
}

func TestSpecificationFile(t *testing.T) {
	spec := runspec.Worker{PipelineKey: "a/b/c", MaxAttempts: 3, MaxDeliver: 13, Concurrency: 2,
		Subscription: runspec.Subscription{Trigger: "order.post"}}
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	path := write(t, string(text))
	t.Setenv("ORDER_POST_ATTEMPTS", "8")
	loaded, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if loaded.PipelineKey != "a/b/c" || loaded.MaxAttempts != 8 || loaded.MaxDeliver != 18 || loaded.Concurrency != 2 {
		t.Errorf("loaded: %+v", loaded)
	}
	if _, err := FromFile(write(t, `{"pipelineKye": "a"}`)); err == nil || !strings.Contains(err.Error(), "pipelineKye") {
		t.Errorf("an unknown field: %v", err)
	}
}
