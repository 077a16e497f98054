package bookingprovider

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Secrets reads Secrets of the operator's namespace one by one, and tells when one that was asked for changes. Each is
// watched on its own by a field selector on its name, so that a Role for that one name is enough, and the watch keeps
// its metadata alone: no credential rests in a cache.
type Secrets struct {
	config    *rest.Config
	live      client.Reader
	namespace string
	changes   chan string

	mu      sync.Mutex
	ctx     context.Context // of Start; nil before
	wanted  map[string]bool
	started map[string]context.CancelFunc
	// lasting are watched for good.
	lasting map[string]bool
}

// NewSecrets returns Secrets that read through live, a reader without a cache. The names are watched from the start.
func NewSecrets(config *rest.Config, live client.Reader, namespace string, names ...string) *Secrets {
	s := &Secrets{
		config: config, live: live, namespace: namespace, changes: make(chan string, 64),
		wanted: map[string]bool{}, started: map[string]context.CancelFunc{}, lasting: map[string]bool{},
	}
	for _, name := range names {
		s.wanted[name], s.lasting[name] = true, true
	}
	return s
}

// Start watches the wanted Secrets until the context ends. It is a manager's Runnable.
func (s *Secrets) Start(ctx context.Context) error {
	s.mu.Lock()
	s.ctx = ctx
	names := make([]string, 0, len(s.wanted))
	for name := range s.wanted {
		names = append(names, name)
	}
	s.mu.Unlock()
	for _, name := range names {
		if err := s.watch(name); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// read returns a Secret as it is now, and has it watched from then on.
func (s *Secrets) read(ctx context.Context, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := s.live.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, secret); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, withWatch(s.watch(name), err)
		}
		return nil, err
	}
	return secret, s.watch(name)
}

// withWatch returns the error of a read, or that of the watch which was to tell when it gets better.
func withWatch(watch, read error) error {
	if watch != nil {
		return watch
	}
	return read
}

// watch begins to watch a Secret, once. It doesn't wait for the first list.
func (s *Secrets) watch(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted[name] = true
	if s.ctx == nil || s.started[name] != nil {
		return nil
	}
	c, err := cache.New(s.config, cache.Options{
		DefaultNamespaces:    map[string]cache.Config{s.namespace: {}},
		DefaultFieldSelector: fields.OneTermEqualSelector("metadata.name", name),
		DefaultTransform:     cache.TransformStripManagedFields(),
	})
	if err != nil {
		return fmt.Errorf("prepare the watch of Secret %s: %w", name, err)
	}
	kind := &metav1.PartialObjectMetadata{}
	kind.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	ctx, stop := context.WithCancel(s.ctx)
	informer, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
	if err != nil {
		stop()
		return fmt.Errorf("watch Secret %s: %w", name, err)
	}
	if _, err := informer.AddEventHandler(s.tell(ctx, name)); err != nil {
		stop()
		return fmt.Errorf("listen to Secret %s: %w", name, err)
	}
	s.started[name] = stop
	go func() {
		if err := c.Start(ctx); err != nil {
			log.FromContext(ctx).Error(err, "the watch of a Secret ended; its changes are seen late", "secret", name)
		}
	}()
	return nil
}

// retire ends the watches of Secrets that are not among the named ones nor among those of the start.
func (s *Secrets) retire(named map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, stop := range s.started {
		if !named[name] && !s.lasting[name] {
			stop()
			delete(s.started, name)
			delete(s.wanted, name)
		}
	}
}

func (s *Secrets) tell(ctx context.Context, name string) toolscache.ResourceEventHandler {
	changed := func() {
		select {
		case s.changes <- name:
		case <-ctx.Done():
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		UpdateFunc: func(_, _ any) { changed() },
		DeleteFunc: func(any) { changed() },
	}
}
