#!/usr/bin/env bash
# Build the S3 server of the tests of feeds in object stores, from its Go module: build_object_store.sh [FOLDER]
# Needs Go 1.25 or later, and some minutes on two busy cores. What the folder has already is not built again. Then:
#   export PLIMSOLL_OBJECT_STORE=FOLDER/versitygw
set -euo pipefail
cd "$(dirname "$0")/.."

version=v1.8.0
folder=${1:-.venv/object-store}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
if [ "$(cat "$folder/version" 2>/dev/null)" = "$version" ]; then
    echo "$folder has versitygw $version"
    exit 0
fi
GOBIN=$folder CGO_ENABLED=0 nice -n 10 go install -p "${JOBS:-2}" -trimpath -ldflags="-s -w" \
    "github.com/versity/versitygw/cmd/versitygw@$version"
echo "$version" >"$folder/version"
echo "built: export PLIMSOLL_OBJECT_STORE=$folder/versitygw"
