// Package program holds what the two shipped programs have in common as processes: their base flags, JSON logs, a
// certificate that reloads, metrics behind authentication, probes and a version.
//
// It knows no kind of ours and decides nothing.
package program

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
)

// DefaultNamespace is where the operator lives unless POD_NAMESPACE or --namespace say otherwise.
const DefaultNamespace = "flight-operator-system"

// Options are the settings that both programs take. The zero value isn't usable; start from DefaultOptions.
type Options struct {
	// TLSDir holds tls.crt and tls.key, as a mounted Secret of type kubernetes.io/tls does.
	TLSDir string
	// MetricsBindAddress is where metrics are served over TLS to callers that may get the non-resource URL /metrics.
	// "0" switches them off.
	MetricsBindAddress string
	// HealthProbeBindAddress is where /healthz and /readyz are served in clear.
	HealthProbeBindAddress string
	// Namespace is the operator's own.
	Namespace string
	// Kubeconfig is a file; empty means the ServiceAccount of the pod.
	Kubeconfig string
	// LogLevel is debug, info, warn or error.
	LogLevel string
}

// DefaultOptions returns the settings of a pod. It reads POD_NAMESPACE.
func DefaultOptions() Options {
	namespace := os.Getenv("POD_NAMESPACE")
	if namespace == "" {
		namespace = DefaultNamespace
	}
	return Options{
		TLSDir:                 "/etc/flight-operator/tls",
		MetricsBindAddress:     ":8443",
		HealthProbeBindAddress: ":8081",
		Namespace:              namespace,
		LogLevel:               "info",
	}
}

// AddFlags binds the options to flags; the present values are the defaults.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.TLSDir, "tls-dir", o.TLSDir, "folder with tls.crt and tls.key, read again when they change")
	fs.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress, "address that serves /metrics over TLS to authorised callers; 0 switches it off")
	fs.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", o.HealthProbeBindAddress, "address that serves /healthz and /readyz")
	fs.StringVar(&o.Namespace, "namespace", o.Namespace, "namespace of the operator (environment: POD_NAMESPACE)")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "kubeconfig file; empty uses the pod's ServiceAccount")
	fs.StringVar(&o.LogLevel, "log-level", o.LogLevel, "debug, info, warn or error")
}

// Validate tells everything that is wrong with the options, each with the flag's name.
func (o *Options) Validate() error {
	var problems []error
	for _, name := range []string{certFile, keyFile} {
		if _, err := os.Stat(filepath.Join(o.TLSDir, name)); err != nil {
			problems = append(problems, fmt.Errorf("--tls-dir: %w (cert-manager writes it; mount the Secret there)", err))
		}
	}
	if o.MetricsBindAddress != "0" {
		problems = append(problems, CheckAddress("--metrics-bind-address", o.MetricsBindAddress))
	}
	problems = append(problems, CheckAddress("--health-probe-bind-address", o.HealthProbeBindAddress))
	if strings.TrimSpace(o.Namespace) == "" {
		problems = append(problems, errors.New("--namespace: must not be empty"))
	}
	if _, err := zapcore.ParseLevel(o.LogLevel); err != nil {
		problems = append(problems, fmt.Errorf("--log-level: %q is none of debug, info, warn, error", o.LogLevel))
	}
	return errors.Join(problems...)
}

// CheckAddress says whether a flag's value is host:port with an optional host.
func CheckAddress(flag, address string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("%s: %q is not host:port, as in :8443 or 127.0.0.1:8443", flag, address)
	}
	return nil
}

// Command is how a program is called.
type Command struct {
	// Name is the program's, Summary one sentence on what it is, Examples lines to copy, Version the build's number.
	Name, Summary, Examples, Version string
	// AddFlags binds the program's options.
	AddFlags func(*pflag.FlagSet)
}

// Parse reads a program's arguments. Done says that --help or --version has been answered, and nothing is to be run.
func (c Command) Parse(args []string) (done bool, err error) {
	fs := pflag.NewFlagSet(c.Name, pflag.ContinueOnError)
	fs.Usage = func() {
		fmt.Fprintf(fs.Output(), "%s\n\nUsage:\n  %s [flags]\n\nExamples:\n%s\n\nFlags:\n%s", c.Summary, c.Name, c.Examples, fs.FlagUsages())
	}
	c.AddFlags(fs)
	showVersion := fs.Bool("version", false, "print the version and exit")
	switch err := fs.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return true, nil
	case err != nil:
		return false, err
	case fs.NArg() > 0:
		return false, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if *showVersion {
		_, err := fmt.Println(Version(c.Version))
		return true, err
	}
	return false, nil
}
