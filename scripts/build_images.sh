#!/usr/bin/env bash
# Build the container images with whichever builder works here: docker, podman or buildah.
#
#   scripts/build_images.sh TAG [NAME...]     NAME: broker, operator, collector, spark; without one, all of them
#
# BUILDER names one of the three; BUILD_ARGS is handed to it (BUILD_ARGS="--no-cache").
set -euo pipefail
cd "$(dirname "$0")/.."

tag=${1:?usage: scripts/build_images.sh TAG [NAME...]}
shift
declare -A dockerfiles=([broker]=broker-image/Dockerfile [operator]=operator/Dockerfile
    [collector]=telemetry/Dockerfile [spark]=sparkjobs/Dockerfile)

# A docker command without a daemon behind it is no builder.
works() { case $1 in buildah) buildah version ;; *) "$1" info ;; esac >/dev/null 2>&1; }
if [ -z "${BUILDER:-}" ]; then
    for candidate in docker podman buildah; do
        if works "$candidate"; then BUILDER=$candidate && break; fi
    done
fi
[ -n "${BUILDER:-}" ] || { echo "images: no builder works here; start the Docker daemon, or install podman or buildah" >&2; exit 1; }
export BUILDAH_ISOLATION="${BUILDAH_ISOLATION:-chroot}"  # needs no container runtime
export BUILDAH_FORMAT="${BUILDAH_FORMAT:-docker}"  # the OCI format knows no HEALTHCHECK

build() {
    # shellcheck disable=SC2086  # several words are several arguments
    case $BUILDER in
        buildah) buildah bud --quiet --layers ${BUILD_ARGS:-} -t "$1" -f "$2" . >/dev/null ;;
        *) "$BUILDER" build --quiet ${BUILD_ARGS:-} -t "$1" -f "$2" . >/dev/null ;;
    esac
}

names=("$@")
[ ${#names[@]} -gt 0 ] || names=(broker operator collector spark)
for name in "${names[@]}"; do
    file=${dockerfiles[$name]:?unknown image $name: broker, operator, collector or spark}
    if [ ! -f "$file" ] && [ $# -eq 0 ]; then continue; fi
    build "plimsoll/$name:$tag" "$file"
    echo "plimsoll/$name:$tag"
done
