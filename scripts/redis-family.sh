#!/bin/sh
# Runs the tests that talk to Redis on other servers of its family.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)

usage() {
	cat <<'END'
Usage: scripts/redis-family.sh [--debian SUITE] [SERVER...]

Runs the tests of every package that keeps something in Redis (stores, counters, queues, rules,
overrides, statistics) on each SERVER, a program such as /usr/bin/valkey-server, and prints a line
of docs/guides/redis.md for each: what was tested, and how many tests passed.

  --debian SUITE  also on redis-server and valkey-server of that Debian release, such as trixie.
                  They are downloaded with apt-get and unpacked beside their libraries; nothing is
                  installed; they stay in bin/redis-family.

Without arguments, it tests the redis-server in the PATH.
END
}

packages="./store/redis/... ./counter/redis ./queue/... ./internal/rules/repo/redis ./internal/archiveredis"
dir="$here/bin/redis-family"
servers="" suite=""
while [ $# -gt 0 ]; do
	case $1 in
	--debian) suite=${2:?--debian needs a release, such as trixie} && shift ;;
	-h | --help) usage && exit 0 ;;
	-*) usage >&2 && exit 2 ;;
	*) servers="$servers $1" ;;
	esac
	shift
done

# unpack brings a server of a Debian release with its libraries, and a program that starts it
# with those instead of the machine's.
unpack() {
	root="$dir/$suite/$1"
	[ -x "$root/$2" ] && return
	rm -rf "$root" && mkdir -p "$root/lists/partial" "$root/cache/archives/partial" "$root/debs" "$root/files"
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | sort -u | head -n 1)
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$root/sources.list"
	: >"$root/status"
	apt() {
		apt-get -qq -o Dir::State="$root" -o Dir::State::lists="$root/lists" -o Dir::State::status="$root/status" \
			-o Dir::Cache="$root/cache" -o Dir::Etc::sourcelist="$root/sources.list" -o Dir::Etc::sourceparts=- \
			-o APT::Install-Recommends=false -o APT::Sandbox::User=root "$@"
	}
	apt update >&2
	apt install -y --download-only "$1" >&2
	for deb in "$root"/cache/archives/*.deb; do dpkg-deb -x "$deb" "$root/files"; done
	libraries=$(dirname "$(find "$root/files" -name 'libc.so.6' | head -n 1)")
	binary=$(find "$root/files" -path "*/bin/$2*" \( -type f -o -type l \) | head -n 1)
	[ -L "$binary" ] && binary="$(dirname "$binary")/$(basename "$(readlink "$binary")")"
	# By its name the program knows that it is the server, and none of its other tools.
	printf '#!/bin/sh\nexec "%s" --argv0 "%s" --library-path "%s" "%s" "$@"\n' \
		"$(find "$root/files" -name 'ld-linux*.so.*' | head -n 1)" "$2" "$libraries:$libraries/systemd" "$binary" >"$root/$2"
	chmod +x "$root/$2"
}

if [ -n "$suite" ]; then
	for name in redis-server valkey-server; do
		unpack "$name" "$name"
		servers="$servers $dir/$suite/$name/$name"
	done
fi
[ -n "$servers" ] || servers=$(command -v redis-server)

failed=0
for server in $servers; do
	place=$(mktemp -d)
	ln -s "$server" "$place/redis-server"
	version=$("$server" --version | sed 's/ sha=.*//')
	echo "Testing $version" >&2
	# shellcheck disable=SC2086 # the packages are words
	(cd "$here" && PATH="$place:$PATH" go test -count=1 -json $packages >"$place/log") || failed=1
	passed=$(grep -c '"Action":"pass","Package":"[^"]*","Test":"[^/"]*"' "$place/log" || true)
	bad=$(grep -c '"Action":"fail","Package":"[^"]*","Test":"[^/"]*"' "$place/log" || true)
	echo "| $version | $((passed + bad)) tests, $passed passed |"
	if [ "$bad" -gt 0 ]; then
		grep '"Action":"fail"' "$place/log" | grep -o '"Test":"[^"]*"' | sort -u | sed 's/^/    failed: /' >&2
		echo "    log: $place/log" >&2
	else
		rm -rf "$place"
	fi
done
exit $failed
