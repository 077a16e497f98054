#!/bin/sh
# Ends what a starter left behind. Usage: warden.sh RUN [CREDENTIAL...], with the starter's pipe as standard
# input.
# The word "stopped" means that the starter has cleaned up itself. The end of the pipe without it means that the
# starter is gone (killed, timed out, crashed): then the processes noted in RUN/*.pid are ended, and RUN and the credentials are removed.
trap '' INT TERM HUP
read -r word
[ "$word" = stopped ] && exit 0
for file in "$1"/*.pid; do
	pid=$(cat "$file" 2>/dev/null) || continue
	# A process id may have been given to somebody else since: ours all name RUN in their arguments.
	if [ -r "/proc/$pid/cmdline" ] && ! grep -qF "$1" "/proc/$pid/cmdline"; then continue; fi
	kill -9 "$pid" 2>/dev/null
done
# Processes that were just killed may still write for a moment, and so may a kubectl of the starter, which is in no file
# and ends by itself now that nobody answers it: what comes back is removed again.
for _ in 1 2 3 4 5 6; do rm -rf "$@"; sleep 0.5; done
