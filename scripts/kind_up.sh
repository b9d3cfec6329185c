#!/usr/bin/env bash
# A kind cluster with the images of this checkout in it: scripts/kind_up.sh NAME TAG. A cluster that is there is used.
set -euo pipefail
cd "$(dirname "$0")/.."

name=${1:?usage: scripts/kind_up.sh NAME TAG} tag=${2:?usage: scripts/kind_up.sh NAME TAG}
command -v kind >/dev/null || { echo "kind-up: kind is not on PATH; https://kind.sigs.k8s.io says how to install it" >&2; exit 1; }
docker info >/dev/null 2>&1 || { echo "kind-up: no Docker daemon answers; kind makes its nodes with one" >&2; exit 1; }

kind get clusters | grep -qx "$name" || kind create cluster --name "$name" --wait 120s
images="broker operator collector spark"
# shellcheck disable=SC2086  # a list of words
BUILDER=docker scripts/build_images.sh "$tag" $images
for image in $images; do
    kind load docker-image "plimsoll/$image:$tag" --name "$name"
done
echo "kubectl config use-context kind-$name"
echo "helm install plimsoll helm/plimsoll --namespace plimsoll --create-namespace" \
    "--set image.tag=$tag,brokerImage.tag=$tag,collectorImage.tag=$tag,sparkImage.tag=$tag"
