#!/bin/sh
# Started through a link RUN/NAME: writes its process id to RUN/NAME.pid and becomes RUN/NAME.bin.
# So whoever outlives the starter knows which processes to end (see warden.sh).
echo $$ >"$0.pid" && exec "$0.bin" "$@"
