package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flight-operator/flight-operator/cmd/internal/program"
	"github.com/flight-operator/flight-operator/internal/quota"
)

// installationForm is what can stand in the names of bookings, which divide their parts by slashes.
var installationForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

// options are the settings of the controller program.
type options struct {
	program.Options
	// installation names this installation in what bookings are called. Empty: the UID of the namespace kube-system.
	installation string
	// leaderElect lets several processes stand by for one that works.
	leaderElect bool
	// identity is this process's name in the election.
	identity string
	// credentialsSecret is the Secret whose changes are watched from the start.
	credentialsSecret string
	// workers is how many tickets are worked on at once.
	workers int
	// poll is how often what nobody announces is looked at.
	poll time.Duration
	// requestLife is longer than any request takes in the API server.
	requestLife time.Duration
}

// defaultOptions returns the settings of a pod. It reads POD_NAME.
func defaultOptions() options {
	identity := os.Getenv("POD_NAME")
	if identity == "" {
		if host, err := os.Hostname(); err == nil {
			identity = host
		}
	}
	return options{
		Options: program.DefaultOptions(), leaderElect: true, identity: identity,
		credentialsSecret: "flight-operator-credentials", workers: 4, poll: 10 * time.Minute,
		requestLife: quota.Patience,
	}
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	o.AddFlags(fs)
	fs.StringVar(&o.installation, "installation", o.installation, "name of this installation in what bookings are called; keep it in backups (default: the UID of namespace kube-system)")
	fs.BoolVar(&o.leaderElect, "leader-elect", o.leaderElect, "work only while this process holds the lease")
	fs.StringVar(&o.credentialsSecret, "credentials-secret", o.credentialsSecret, "Secret with the tokens of the booking APIs")
	fs.IntVar(&o.workers, "max-concurrent-reconciles", o.workers, "how many tickets are worked on at once")
	fs.DurationVar(&o.poll, "poll-interval", o.poll, "how often bookings are read again, and what nobody announces is looked at")
	fs.DurationVar(&o.requestLife, "request-life", o.requestLife, "longer than any request for a ticket takes in the API server: its --request-timeout and half a minute; quotas are in force no earlier after a change")
}

// validate tells everything that is wrong, each with the flag's name.
func (o *options) validate() error {
	problems := []error{o.Validate()}
	if o.installation != "" && !installationForm.MatchString(o.installation) {
		problems = append(problems, fmt.Errorf("--installation: %q is not 1 to 63 letters, digits, dots, dashes or underscores", o.installation))
	}
	if wrong := validation.IsDNS1123Subdomain(o.credentialsSecret); len(wrong) > 0 {
		problems = append(problems, fmt.Errorf("--credentials-secret: %q is not the name of a Secret: %s", o.credentialsSecret, wrong[0]))
	}
	if o.workers < 1 || o.workers > 100 {
		problems = append(problems, fmt.Errorf("--max-concurrent-reconciles: %d is not between 1 and 100", o.workers))
	}
	if o.poll < time.Second || o.poll > 24*time.Hour {
		problems = append(problems, fmt.Errorf("--poll-interval: %s is not between 1s and 24h", o.poll))
	}
	if o.requestLife < time.Second || o.requestLife > time.Hour {
		problems = append(problems, fmt.Errorf("--request-life: %s is not between 1s and 1h", o.requestLife))
	}
	return errors.Join(problems...)
}
