#!/bin/sh
# Makes sure that the Debian packages which the tests need are there: installs
# them as root, names them otherwise. Each argument is COMMAND:PACKAGE,... and
# is satisfied when the command exists.
set -eu

PATH="$PATH:/usr/sbin:/sbin" # where Debian has servers, and not everybody looks
missing=""
for need in "$@"; do
	command -v "${need%%:*}" >/dev/null 2>&1 || missing="$missing $(echo "${need#*:}" | tr , ' ')"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
	echo "The tests need these Debian packages; please install them:" >&2
	echo "  sudo apt-get install$missing" >&2
	exit 1
fi
echo "Installing the Debian packages that the tests need:$missing" >&2
# Servers are for the tests to start, so none is started by its package.
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
apt-get update -qq
# shellcheck disable=SC2086 # the packages are words
apt-get install -y -qq --no-install-recommends $missing >/dev/null
