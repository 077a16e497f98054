package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/flight-operator/flight-operator/internal/booking/simulator"
)

// ready is the line that is printed once both listeners stand.
type ready struct {
	API   string `json:"api"`
	Admin string `json:"admin"`
	// CA is the file that holds the made certificate's authority.
	CA string `json:"ca,omitempty"`
}

// shutdownTime bounds the wait for calls that are under way.
const shutdownTime = 5 * time.Second

// run serves until the context ends. It returns nil after a clean end.
func run(ctx context.Context, o *options, out io.Writer) error {
	tokens, err := o.readTokens()
	if err != nil {
		return err
	}
	certificate, err := o.serverCertificate(time.Now())
	if err != nil {
		return err
	}
	sim := simulator.New(simulator.Options{Settings: o.settings(), Tokens: tokens})
	apiListener, err := net.Listen("tcp", o.bindAddress)
	if err != nil {
		return fmt.Errorf("listen for the booking API: %w", err)
	}
	adminListener, err := net.Listen("tcp", o.adminAddress)
	if err != nil {
		return errors.Join(fmt.Errorf("listen for the switches: %w", err), apiListener.Close())
	}
	api := server(sim.Handler())
	api.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	admin := server(sim.AdminHandler())
	ended := make(chan error, 2)
	go func() { ended <- api.ServeTLS(apiListener, "", "") }()
	go func() { ended <- admin.Serve(adminListener) }()
	err = json.NewEncoder(out).Encode(ready{
		API: "https://" + apiListener.Addr().String(), Admin: "http://" + adminListener.Addr().String(), CA: o.writeCA,
	})
	running := 2
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-ended:
			running--
		}
	}
	return errors.Join(err, shutDown(sim, ended, running, api, admin))
}

func server(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		// Dropped connections and failed handshakes are what a simulator is for.
		ErrorLog: log.New(io.Discard, "", 0),
	}
}

// shutDown ends held calls, lets the others finish, and waits for the servers that still run.
func shutDown(sim *simulator.Simulator, ended <-chan error, running int, servers ...*http.Server) error {
	sim.Close()
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	var problems []error
	for _, s := range servers {
		if err := s.Shutdown(ctx); err != nil {
			problems = append(problems, fmt.Errorf("shut down: %w", err), s.Close())
		}
	}
	for range running {
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}
