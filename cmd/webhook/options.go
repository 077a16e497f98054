package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flight-operator/flight-operator/cmd/internal/program"
)

// maxDrain bounds the time that a stopping process goes on serving; a pod has 60 s in all.
const maxDrain = 30 * time.Second

// options are the settings of the webhook program.
type options struct {
	program.Options
	// webhookBindAddress is where reviews are served.
	webhookBindAddress string
	// replica is this process's name among the replicas: the pod's.
	replica string
	// podUID is the UID of the pod that the process runs in; empty where there are no pods. It comes from the
	// environment alone.
	podUID types.UID
	// drain is how long to serve on after SIGTERM, unready, so that nobody is sent to a closed port.
	drain time.Duration
}

// defaultOptions returns the settings of a pod. It reads POD_NAME and POD_UID.
func defaultOptions() options {
	replica := os.Getenv("POD_NAME")
	if replica == "" {
		if host, err := os.Hostname(); err == nil {
			replica = strings.ToLower(host)
		}
	}
	return options{
		Options:            program.DefaultOptions(),
		webhookBindAddress: ":9443",
		replica:            replica,
		podUID:             types.UID(os.Getenv("POD_UID")),
		drain:              5 * time.Second,
	}
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	o.AddFlags(fs)
	fs.StringVar(&o.webhookBindAddress, "webhook-bind-address", o.webhookBindAddress, "address that serves admission reviews over TLS")
	fs.StringVar(&o.replica, "replica", o.replica, "name of this process among the replicas (environment: POD_NAME)")
	fs.DurationVar(&o.drain, "drain", o.drain, "how long to serve on, unready, after SIGTERM")
}

// validate tells everything that is wrong, each with the flag's name.
func (o *options) validate() error {
	problems := []error{o.Validate()}
	if _, _, err := o.listen(); err != nil {
		problems = append(problems, err)
	}
	if wrong := validation.IsDNS1123Subdomain(o.replica); len(wrong) > 0 {
		problems = append(problems, fmt.Errorf("--replica: %q can't be part of a Lease's name: %s", o.replica, wrong[0]))
	}
	if o.drain < 0 || o.drain > maxDrain {
		problems = append(problems, fmt.Errorf("--drain: %s is not between 0s and %s", o.drain, maxDrain))
	}
	return errors.Join(problems...)
}

// listen splits the address that reviews are served at.
func (o *options) listen() (host string, port int, err error) {
	host, text, err := net.SplitHostPort(o.webhookBindAddress)
	if err != nil {
		return "", 0, fmt.Errorf("--webhook-bind-address: %q is not host:port, as in :9443 or 127.0.0.1:9443", o.webhookBindAddress)
	}
	port, err = strconv.Atoi(text)
	if err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("--webhook-bind-address: %q is not a port from 1 to 65535", text)
	}
	return host, port, nil
}
