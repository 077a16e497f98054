package simulator

import (
	"crypto/tls"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/time/rate"
)

// excess says how long an account has to wait for its next call; zero: this one is within its rate.
func (s *Simulator) excess(account string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settings.RateLimit <= 0 {
		return 0
	}
	limiter := s.limiters[account]
	if limiter == nil {
		burst := s.settings.RateBurst
		if burst == 0 {
			burst = max(1, int(s.settings.RateLimit))
		}
		limiter = rate.NewLimiter(rate.Limit(s.settings.RateLimit), burst)
		s.limiters[account] = limiter
	}
	now := s.now()
	if limiter.AllowN(now, 1) {
		return 0
	}
	return time.Duration((1 - limiter.TokensAt(now)) / s.settings.RateLimit * float64(time.Second))
}

// tooMany asks for a pause, in whole seconds as the header wants it.
func tooMany(wait time.Duration) *problem {
	p := newProblem(http.StatusTooManyRequests, "rate_limited", "Too many calls in a second.")
	p.retryAfter = strconv.Itoa(int(math.Ceil(wait.Seconds())))
	return p
}

// linger waits for as long as every answer takes.
func (s *Simulator) linger() {
	latency := s.Settings().Latency.Duration
	if latency <= 0 {
		return
	}
	timer := time.NewTimer(latency)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.done:
	}
}

// reset cuts a connection so that the caller is told of a reset, as by a firewall or a process that died, and not of an
// end. A connection that can't be had is closed.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) //nolint:forbidigo // the way that net/http offers to cut a connection
	}
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn() // without the farewell of TLS
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // what is not sent yet is thrown away, and the other side is told so
	}
	_ = conn.Close()
}
