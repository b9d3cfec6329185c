#!/usr/bin/env bash
# Build the NATS server that bench/broker/jetstream.py compares with, from its Go module: build_nats.sh [FOLDER]
# Needs Go 1.26 or later, and some minutes on two busy cores. What the folder has already is not built again. Then:
#   export PLIMSOLL_NATS=FOLDER/nats-server
set -euo pipefail
cd "$(dirname "$0")/.."

version=v2.15.2
folder=${1:-.venv/nats}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
if [ "$(cat "$folder/version" 2>/dev/null)" = "$version" ]; then
    echo "$folder has nats-server $version"
    exit 0
fi
GOBIN=$folder CGO_ENABLED=0 nice -n 10 go install -p "${JOBS:-2}" -trimpath -ldflags="-s -w" \
    "github.com/nats-io/nats-server/v2@$version"
echo "$version" >"$folder/version"
echo "built: export PLIMSOLL_NATS=$folder/nats-server"
