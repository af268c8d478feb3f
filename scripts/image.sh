#!/bin/sh
# Builds the container image weir:VERSION with buildah, podman or docker, whichever there is.
#
#   VERSION  default what git describes
#   ARCH     amd64 or arm64; default this machine's
#   BINARY   a static binary for linux and ARCH that is there already; default one is built
#   CONTEXT  what goes into the image; default bin/image
set -eu
cd "$(dirname "$0")/.."

builder=""
for name in buildah podman docker; do
	if command -v "$name" >/dev/null 2>&1; then
		builder=$name
		break
	fi
done
if [ -z "$builder" ]; then
	echo "An image is built with buildah, podman or docker; please install one of them." >&2
	exit 1
fi

version=${VERSION:-$(git describe --tags --always --dirty)}
version=${version#v}
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
arch=${ARCH:-$(go env GOARCH)}
context=${CONTEXT:-bin/image}
tree=$context/linux/$arch

rm -rf "$tree"
mkdir -p "$tree/usr/bin" "$tree/etc/weir" "$tree/var/lib/weir"
if [ -n "${BINARY:-}" ]; then
	cp "$BINARY" "$tree/usr/bin/weir"
else
	GOOS=linux GOARCH=$arch make --silent build BIN="$tree/usr/bin"
fi
cp deploy/package/files/rules.yaml "$tree/etc/weir/rules.yaml"
chmod -R u=rwX,go=rX "$tree"
chmod 1777 "$tree/var/lib/weir"

# Only Docker's format has health checks.
format="--format docker"
[ "$builder" != docker ] || format=""
# shellcheck disable=SC2086 # the format is words
"$builder" build $format --platform "linux/$arch" --build-arg "VERSION=$version" --build-arg "REVISION=$revision" \
	--tag "weir:$version" --file Dockerfile "$context"
