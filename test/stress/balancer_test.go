package stress

import (
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// balancer spreads connections over webhooks, as a Service does. One that doesn't listen is passed over.
type balancer struct {
	listener net.Listener
	open     sync.WaitGroup

	mu      sync.Mutex
	targets []string
	next    int
	closed  bool
	pipes   map[net.Conn]bool
}

func newBalancer(targets ...string) (*balancer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &balancer{listener: listener, targets: targets, pipes: map[net.Conn]bool{}}
	b.open.Go(b.serve)
	return b, nil
}

func (b *balancer) port() int32 {
	address, err := netip.ParseAddrPort(b.listener.Addr().String())
	if err != nil {
		return 0 // no listener of this kind has such an address
	}
	return int32(address.Port())
}

func (b *balancer) serve() {
	for {
		caller, err := b.listener.Accept()
		if err != nil {
			return
		}
		b.open.Go(func() { b.carry(caller) })
	}
}

// carry connects a caller to a webhook until either of them hangs up.
func (b *balancer) carry(caller net.Conn) {
	defer caller.Close()
	webhook := b.dial()
	if webhook == nil {
		return
	}
	defer webhook.Close()
	if !b.keep(caller, webhook) {
		return
	}
	defer b.forget(caller, webhook)
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{caller, webhook}, {webhook, caller}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // that it breaks is the end of it
			_, _ = way[0].Close(), way[1].Close()
		})
	}
	both.Wait()
}

// dial takes the webhooks in turn; nil if none listens.
func (b *balancer) dial() net.Conn {
	b.mu.Lock()
	targets, first := b.targets, b.next
	b.next++
	b.mu.Unlock()
	for i := range targets {
		if connection, err := net.DialTimeout("tcp", targets[(first+i)%len(targets)], time.Second); err == nil {
			return connection
		}
	}
	return nil
}

// use replaces the webhooks for connections to come, and breaks those that are open.
func (b *balancer) use(targets ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.targets = targets
	for c := range b.pipes {
		_ = c.Close()
	}
}

// out takes a webhook that isn't ready from those that new connections go to, and in puts it back: what endpoints do.
func (b *balancer) out(target string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.targets = slices.DeleteFunc(slices.Clone(b.targets), func(t string) bool { return t == target })
}

func (b *balancer) in(target string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.targets = append(slices.Clone(b.targets), target)
}

func (b *balancer) keep(connections ...net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range connections {
		b.pipes[c] = true
	}
	return !b.closed
}

func (b *balancer) forget(connections ...net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range connections {
		delete(b.pipes, c)
	}
}

func (b *balancer) close() {
	_ = b.listener.Close()
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.use()
	b.open.Wait()
}
