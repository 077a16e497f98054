package apiproxy

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// HoldWatches keeps back what the controller's watches tell, until the returned function is called. A hold replaces the
// one before it.
func (p *Proxy) HoldWatches() (release func()) {
	held := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = held
	return sync.OnceFunc(func() { close(held) })
}

func (p *Proxy) flow() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// slow puts the delay into the answers to watches.
func (p *Proxy) slow(answer *http.Response) error {
	if watches(answer.Request) {
		answer.Body = p.delay(answer.Body)
	}
	return nil
}

func watches(r *http.Request) bool {
	value := r.URL.Query().Get("watch")
	return r.Method == http.MethodGet && (value == "true" || value == "1")
}

// delayed is a stream whose bytes come later than they did.
type delayed struct {
	proxy  *Proxy
	source io.ReadCloser
	chunks chan chunk
	rest   []byte
	end    error // of the source; told once rest is empty
	closed chan struct{}
	once   sync.Once
}

type chunk struct {
	bytes []byte
	at    time.Time
	err   error
}

func (p *Proxy) delay(source io.ReadCloser) io.ReadCloser {
	d := &delayed{proxy: p, source: source, chunks: make(chan chunk, 1024), closed: make(chan struct{})}
	go d.pump()
	return d
}

// pump notes when each piece came.
func (d *delayed) pump() {
	for {
		buffer := make([]byte, 32<<10)
		n, err := d.source.Read(buffer)
		select {
		case d.chunks <- chunk{buffer[:n], time.Now(), err}:
		case <-d.closed:
			return
		}
		if err != nil {
			return
		}
	}
}

// Read implements io.Reader.
func (d *delayed) Read(into []byte) (int, error) {
	for len(d.rest) == 0 {
		if d.end != nil {
			return 0, d.end
		}
		select {
		case c := <-d.chunks:
			if !d.wait(c.at) {
				return 0, io.ErrClosedPipe
			}
			d.rest, d.end = c.bytes, c.err
		case <-d.closed:
			return 0, io.ErrClosedPipe
		}
	}
	n := copy(into, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

// wait waits until a piece is due and watches flow. False: nobody reads any more.
func (d *delayed) wait(came time.Time) bool {
	timer := time.NewTimer(time.Until(came.Add(d.proxy.options.WatchDelay)))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.closed:
		return false
	case <-d.proxy.done:
		return false
	}
	select {
	case <-d.proxy.flow():
		return true
	case <-d.closed:
		return false
	case <-d.proxy.done:
		return false
	}
}

// Close implements io.Closer.
func (d *delayed) Close() error {
	d.once.Do(func() { close(d.closed) })
	return d.source.Close()
}
