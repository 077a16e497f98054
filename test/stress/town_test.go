package stress

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flight-operator/flight-operator/test/apiproxy"
	"github.com/flight-operator/flight-operator/test/installation"
	"github.com/flight-operator/flight-operator/test/scene"
)

const (
	// replicas is how many webhooks there are.
	replicas = 3
	// watchDelay is how far their caches, and the controller's, lag.
	watchDelay = 5 * time.Second
)

// town is an installation whose programs reach the API server through proxies, with a balancer before the webhooks.
type town struct {
	house      *installation.Installation
	balancer   *balancer
	proxies    []*apiproxy.Proxy
	webhooks   []*installation.Replica
	controller *installation.Side
	faults     *faults
}

// newTown starts everything.
func newTown(ctx context.Context) (_ *town, err error) {
	c := &town{faults: newFaults(chosen.seed)}
	c.house, err = installation.Start(ctx, installation.Options{Progress: os.Stderr, WithoutController: true})
	if err != nil {
		return nil, err
	}
	if err := c.settle(ctx); err != nil {
		c.house.Keep()
		return nil, errors.Join(err, fmt.Errorf("the logs stay in %s", c.house.Dir), c.close())
	}
	return c, nil
}

// settle puts three webhooks in the place of one, and starts the controller.
func (c *town) settle(ctx context.Context) error {
	var targets []string
	for n := range replicas {
		proxy, err := c.proxy()
		if err != nil {
			return err
		}
		replica, err := c.house.AddReplica(ctx, installation.ReplicaOptions{
			Name: fmt.Sprintf("webhook-%d", n+1), Server: proxy.URL(), Authority: proxy.Authority(),
		})
		if err != nil {
			return err
		}
		if err := replica.Start(ctx); err != nil {
			return err
		}
		c.webhooks = append(c.webhooks, replica)
		targets = append(targets, replica.Address)
	}
	var err error
	if c.balancer, err = newBalancer(targets...); err != nil {
		return err
	}
	if err := errors.Join(c.admit(ctx), c.direct(ctx, c.balancer.port()), c.house.StopWebhook()); err != nil {
		return err
	}
	proxy, err := c.proxy()
	if err != nil {
		return err
	}
	if c.controller, err = c.house.AddSide(ctx, "stressed-controller", proxy.URL(), proxy.Authority(), "--request-life="+chosen.life.String()); err != nil {
		return err
	}
	if err := c.controller.Start(ctx); err != nil {
		return err
	}
	if err := c.house.WaitFor(ctx, "the provider to be ready", c.house.ProviderReady); err != nil {
		return err
	}
	return c.apply(ctx)
}

// proxy starts one between a program and the API server.
func (c *town) proxy() (*apiproxy.Proxy, error) {
	options, err := apiproxy.ToCluster(c.house.Plane.Config, apiproxy.Window{})
	if err != nil {
		return nil, err
	}
	options.Rewrite, options.Name, options.At, options.WatchDelay = nil, nameOfBucketWrite, c.faults.at, watchDelay
	p := apiproxy.Start(options)
	c.proxies = append(c.proxies, p)
	return p, nil
}

// direct sends reviews to a port of this machine, by a Service as in a cluster. To the address of a local webhook the API
// server speaks HTTP/2 over one connection, which no balancer can spread.
func (c *town) direct(ctx context.Context, port int32) error {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: installation.Namespace, Name: "flight-webhook"}, // the certificate's name
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}
	key := client.ObjectKey{Name: "flight-operator"}
	var mutating admissionv1.MutatingWebhookConfiguration
	var validating admissionv1.ValidatingWebhookConfiguration
	err := errors.Join(c.house.Client.Create(ctx, service), c.house.Client.Get(ctx, key, &mutating), c.house.Client.Get(ctx, key, &validating))
	if err != nil {
		return err
	}
	for i := range mutating.Webhooks {
		if err := redirect(&mutating.Webhooks[i].ClientConfig, port); err != nil {
			return err
		}
	}
	for i := range validating.Webhooks {
		if err := redirect(&validating.Webhooks[i].ClientConfig, port); err != nil {
			return err
		}
	}
	return errors.Join(c.house.Client.Update(ctx, &mutating), c.house.Client.Update(ctx, &validating))
}

// redirect puts the Service in the place of a URL.
func redirect(config *admissionv1.WebhookClientConfig, port int32) error {
	target, err := url.Parse(*config.URL)
	if err != nil {
		return err
	}
	config.URL = nil
	config.Service = &admissionv1.ServiceReference{
		Namespace: installation.Namespace, Name: "flight-webhook", Path: &target.Path, Port: &port,
	}
	return nil
}

// travellers is the group of the people who write tickets. They wait in the API server's queues as users do: an admin's
// requests pass those by.
const travellers = "stress-travellers"

// admit lets the people write tickets.
func (c *town) admit(ctx context.Context) error {
	return c.house.Client.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: travellers},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "flights-edit"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: travellers}},
	})
}

// person is a client of one of so many users.
func (c *town) person(name string) (client.WithWatch, error) {
	config := rest.CopyConfig(c.house.Plane.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{travellers, "system:authenticated"}}
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return impatient{next} })
	return scene.NewClient(config)
}

// impatient hides from the client that a refusal asks it to repeat the request, so that each answer is told.
type impatient struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (i impatient) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := i.next.RoundTrip(r)
	if err == nil {
		answer.Header.Del("Retry-After")
	}
	return answer, err
}

// close ends everything.
func (c *town) close() error {
	err := c.house.Stop()
	if c.balancer != nil {
		c.balancer.close()
	}
	for _, p := range c.proxies {
		p.Close()
	}
	return err
}
