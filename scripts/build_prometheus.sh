#!/usr/bin/env bash
# Build Prometheus and promtool for the tests of dashboards and alerts, from their Go module: build_prometheus.sh [FOLDER]
# Needs Go 1.26.7 or later, and a quarter of an hour on two busy cores. What the folder has already is not built again.
# Without the web page and service discovery, which tests do not use. Then:
#   export PLIMSOLL_PROMETHEUS=FOLDER/prometheus
set -euo pipefail
cd "$(dirname "$0")/.."

version=v0.316.0  # Prometheus 3.16
folder=${1:-.venv/prometheus}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
if [ "$(cat "$folder/version" 2>/dev/null)" = "$version" ]; then
    echo "$folder has Prometheus $version"
    exit 0
fi
for program in promtool prometheus; do
    echo "building $program $version"
    GOBIN=$folder CGO_ENABLED=0 nice -n 10 go install -p "${JOBS:-2}" -trimpath -ldflags="-s -w" \
        -tags remove_all_sd "github.com/prometheus/prometheus/cmd/$program@$version"
done
echo "$version" >"$folder/version"
echo "built: export PLIMSOLL_PROMETHEUS=$folder/prometheus"
