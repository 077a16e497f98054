package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flight-operator/flight-operator/internal/booking/simulator"
)

// tokensVariable holds tokens where no file does.
const tokensVariable = "BOOKING_SIMULATOR_TOKENS"

// defaultAccount is whom a token without an account belongs to.
const defaultAccount = "acct-1"

// options are the flags.
type options struct {
	bindAddress     string
	adminAddress    string
	tlsDir          string
	writeCA         string
	tlsSANs         []string
	tokenFile       string
	keyTTL          time.Duration
	noLookup        bool
	readLag         time.Duration
	processing      time.Duration
	processingFails bool
	latency         time.Duration
	rateLimit       float64
	rateBurst       int
	quoteTTL        time.Duration
	currency        string
}

func defaultOptions() *options {
	return &options{bindAddress: "127.0.0.1:0", adminAddress: "127.0.0.1:0", currency: "EUR"}
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.bindAddress, "bind-address", o.bindAddress, "address of the booking API; port 0 takes a free one")
	fs.StringVar(&o.adminAddress, "admin-bind-address", o.adminAddress, "loopback address of the switches")
	fs.StringVar(&o.tlsDir, "tls-dir", o.tlsDir, "directory with tls.crt and tls.key; without it a certificate is made for this run")
	fs.StringVar(&o.writeCA, "write-ca", o.writeCA, "file that the made certificate's authority is written to (without --tls-dir)")
	fs.StringSliceVar(&o.tlsSANs, "tls-san", o.tlsSANs, "more host names or addresses of the made certificate, beside localhost, 127.0.0.1 and ::1")
	fs.StringVar(&o.tokenFile, "token-file", o.tokenFile, "file with one token a line, each with its account behind a space; else "+tokensVariable)
	fs.DurationVar(&o.keyTTL, "idempotency-key-ttl", o.keyTTL, "how long idempotency keys are remembered; 0 ignores them")
	fs.BoolVar(&o.noLookup, "no-lookup", o.noLookup, "answer 501 to those who list bookings by a name")
	fs.DurationVar(&o.readLag, "read-lag", o.readLag, "how long a commit is missing from reads")
	fs.DurationVar(&o.processing, "processing", o.processing, "how long a new booking stays pending")
	fs.BoolVar(&o.processingFails, "processing-fails", o.processingFails, "let pending bookings end as failed")
	fs.DurationVar(&o.latency, "latency", o.latency, "how long every answer takes")
	fs.Float64Var(&o.rateLimit, "rate-limit", o.rateLimit, "calls a second that an account may make, else 429 with Retry-After; 0 allows any number")
	fs.IntVar(&o.rateBurst, "rate-burst", o.rateBurst, "calls that an account may make at once after a pause; 0 allows those of one second")
	fs.DurationVar(&o.quoteTTL, "quote-ttl", o.quoteTTL, "how long a quote can be booked; 0 means 30m")
	fs.StringVar(&o.currency, "currency", o.currency, "ISO 4217 currency of all prices")
}

// Validate names every flag that is wrong.
func (o *options) Validate() error {
	var problems []error
	if _, _, err := net.SplitHostPort(o.bindAddress); err != nil {
		problems = append(problems, errors.New("--bind-address: use host:port, as in 127.0.0.1:8443"))
	}
	if at, err := netip.ParseAddrPort(o.adminAddress); err != nil || !at.Addr().IsLoopback() {
		problems = append(problems, errors.New("--admin-bind-address: use a loopback address and a port, as in 127.0.0.1:8081: the switches ask for no credential"))
	}
	if o.tlsDir != "" && (o.writeCA != "" || len(o.tlsSANs) > 0) {
		problems = append(problems, errors.New("--tls-dir: leave --write-ca and --tls-san out, they are for a made certificate"))
	}
	if o.tlsDir == "" && o.writeCA == "" {
		problems = append(problems, errors.New("--write-ca or --tls-dir: name one, else no client can trust the server"))
	}
	if o.keyTTL < 0 || o.readLag < 0 || o.processing < 0 || o.latency < 0 || o.quoteTTL < 0 {
		problems = append(problems, errors.New("--idempotency-key-ttl, --read-lag, --processing, --latency, --quote-ttl: use durations that are not negative"))
	}
	if o.rateLimit < 0 || o.rateBurst < 0 {
		problems = append(problems, errors.New("--rate-limit, --rate-burst: use numbers that are not negative"))
	}
	if _, err := o.readTokens(); err != nil {
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

func (o *options) settings() simulator.Settings {
	return simulator.Settings{
		IdempotencyKeyTTL: metav1.Duration{Duration: o.keyTTL},
		NoLookup:          o.noLookup,
		ReadLag:           metav1.Duration{Duration: o.readLag},
		Processing:        metav1.Duration{Duration: o.processing},
		ProcessingFails:   o.processingFails,
		Latency:           metav1.Duration{Duration: o.latency},
		RateLimit:         o.rateLimit,
		RateBurst:         o.rateBurst,
		QuoteTTL:          metav1.Duration{Duration: o.quoteTTL},
		Currency:          o.currency,
	}
}

// readTokens maps tokens to accounts. Its errors hold no token.
func (o *options) readTokens() (map[string]string, error) {
	text, source := os.Getenv(tokensVariable), tokensVariable
	if o.tokenFile != "" {
		content, err := os.ReadFile(o.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		text, source = string(content), "--token-file"
	}
	tokens := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		fields := strings.Fields(lines.Text())
		switch len(fields) {
		case 0:
		case 1:
			tokens[fields[0]] = defaultAccount
		case 2:
			tokens[fields[0]] = fields[1]
		default:
			return nil, fmt.Errorf("%s: line %d has more than a token and an account", source, number)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: read tokens: %w", source, err)
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("%s: holds no token; give one a line in --token-file or %s", source, tokensVariable)
	}
	return tokens, nil
}
