#!/bin/sh
# Runs a command whose temporary files are in memory, if there is much room: the tests write many
# small files, and wait for the disk after each of them.
set -eu

room=$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)
if [ "${room:-0}" -gt 4000000 ] && [ -z "${TMPDIR:-}" ]; then
	# Always the same one, because results of tests that know another are not used again.
	dir=/dev/shm/weir-test-$(pwd | cksum | cut -d ' ' -f 1)-$(id -u)
	rm -rf "$dir" && mkdir "$dir"
	trap 'rm -rf "$dir"' EXIT
	trap 'exit 130' INT TERM
	chmod 1777 "$dir" # some tests are another user
	cp /bin/true "$dir/true"
	if "$dir/true" 2>/dev/null; then
		export TMPDIR="$dir" GOTMPDIR="${GOTMPDIR:-/tmp}"
	fi
fi
"$@"
