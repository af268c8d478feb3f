#!/bin/sh
# Runs the tests under conditions that a developer's machine seldom has.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)

usage() {
	cat <<'END'
Usage: scripts/trial.sh [--runs N] [--hour] [--dir DIR] [PACKAGE... [-- FLAG...]]

Runs "make test" on a copy of this work tree, under all of these conditions at once:

  - as the user nobody, with a home of its own
  - with at most 1024 open files
  - with GOMAXPROCS=1
  - with two busy loops beside it
  - without IPv6, and without any network but 127.0.0.1

It needs root and Debian. It downloads and builds everything before the conditions are in force. What
it starts ends with it. The logs are in bin/trial.

  --runs N    run N times, one after the other, even if one fails (default 3)
  --hour      begin the first run two minutes before the top of an hour
  --dir DIR   keep the copy and what was downloaded and built in DIR, and use it the next time
  PACKAGE     run only these, such as ./engine or ./store/..., with the race detector and the FLAGs
END
}

# run takes place in a network namespace of its own.
run() {
	sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
	ip link set lo up
	for _ in 1 2; do
		sh -c 'while :; do :; done' busy-loop &
	done
	ulimit -n 1024
	as_nobody GOMAXPROCS=1 GOPROXY="file://$dir/go/pkg/mod/cache/download" GOSUMDB=off npm_config_offline=true sh -c '
		{
			echo "user $(id -un), $(ulimit -Hn) open files, GOMAXPROCS=$GOMAXPROCS, $(nproc) processors,"
			echo "$(ps -C sh -o args= | grep -c "busy-loop$") busy loops, $(grep -c . /proc/net/if_inet6) IPv6 addresses"
		} >&3
		cd "$HOME/weir"
		[ $# -gt 0 ] || exec make test
		# A package may be one of another module, so each is tested where it is.
		status=0 packages=""
		while [ $# -gt 0 ] && [ "$1" != -- ]; do
			packages="$packages $1"
			shift
		done
		[ $# -eq 0 ] || shift
		for p in $packages; do
			case $p in */...) all=./... ;; *) all=. ;; esac
			(cd "${p%/...}" && go test -race -timeout 30m "$all" "$@") || status=1
		done
		exit $status' trial "$@"
}

# as_nobody NAME=VALUE... COMMAND... A shell lets what it starts in the background ignore interrupts,
# which tests send to servers.
as_nobody() {
	setpriv --reuid=nobody --regid=nogroup --clear-groups --inh-caps=-all env -i --default-signal \
		PATH="$PATH" LANG=C.UTF-8 HOME="$dir" TMPDIR="$dir/tmp" GOPATH="$dir/go" GOCACHE="$dir/cache" GOFLAGS=-count=1 "$@"
}

# prepare fills DIR, while there is a network.
prepare() {
	cd "$here"
	rm -rf "$dir/weir"
	mkdir -p "$dir/weir" "$dir/tmp" "$dir/go" "$dir/cache"
	{
		git ls-files -z --cached --others --exclude-standard
		printf '%s\0' web/dist web/node_modules
	} | tar --create --format=posix --null --files-from=- --ignore-failed-read --warning=none | tar --extract --directory="$dir/weir"
	chown -R nobody:nogroup "$dir"
	proxy=$(go env GOPROXY) sums=$(go env GOSUMDB)
	cd "$dir/weir"
	for m in $(find . -name go.mod -not -path '*/node_modules/*' -exec dirname {} +); do
		(cd "$m" && as_nobody GOPROXY="$proxy" GOSUMDB="$sums" go test -race -exec true ./...)
	done
	# These download more as they run: clients in JavaScript, and what weir is compared with.
	for m in test/e2e/foreign test/llm/node test/resp/node; do
		(cd "$m" && as_nobody npm ci --no-audit --no-fund && rm -r node_modules)
	done
	(cd test/conformance/envoy && as_nobody GOPROXY="$proxy" GOSUMDB="$sums" go test -race -run '^$' .)
}

# apart OPTION... STEP ARGUMENT... does a step in a PID namespace, whose processes end with its first
# one, and that with this.
apart() {
	unshare --mount --pid --fork --kill-child --mount-proc "$@" &
	child=$!
	status=0
	wait $child || status=$?
	child=""
	return $status
}

case ${1-} in
--step-*)
	step=${1#--step-} dir=$2
	shift 2
	$step "$@"
	exit
	;;
esac

runs=3 hour=no dir=""
while [ $# -gt 0 ]; do
	case $1 in
	--help | -h) usage; exit 0 ;;
	--runs) runs=$2; shift 2 ;;
	--hour) hour=yes; shift ;;
	--dir) dir=$2; shift 2 ;;
	-*) usage >&2; exit 2 ;;
	*) break ;;
	esac
done
[ "$(id -u)" -eq 0 ] || { echo "scripts/trial.sh becomes another user and leaves the network, so it needs root." >&2; exit 1; }

cd "$here"
keep=yes child=""
if [ -z "$dir" ]; then
	dir=$(mktemp -d /var/tmp/weir-trial.XXXXXX) keep=no
fi
mkdir -p "$dir" bin/trial
chmod 755 "$dir"
dir=$(cd "$dir" && pwd)

finish() {
	trap - EXIT INT TERM HUP
	if [ -n "$child" ]; then
		kill -KILL "$child" 2>/dev/null || :
		wait "$child" 2>/dev/null || :
	fi
	[ $keep = yes ] || rm -rf "$dir"
}
trap finish EXIT
trap 'finish; exit 130' INT TERM HUP

make --silent packages web
scripts/packages.sh setpriv:util-linux unshare:util-linux ip:iproute2 sysctl:procps
echo "Downloading and building in $dir; the output is in bin/trial/prepare.log."
apart "$here/scripts/trial.sh" --step-prepare "$dir" >bin/trial/prepare.log 2>&1 || { tail -n 20 bin/trial/prepare.log; exit 1; }
if [ $hour = yes ]; then
	wait=$(( (3600 + 3480 - $(date +%s) % 3600) % 3600 ))
	echo "The first run begins in $wait seconds."
	apart sleep "$wait"
fi

failed=0 n=0
while [ $n -lt "$runs" ]; do
	n=$((n + 1))
	log=bin/trial/run-$n.log
	begin=$(date +%s)
	echo "Run $n of $runs begins at $(date -u +%H:%M:%S) UTC; its output is in $log."
	outcome=passed
	apart --net "$here/scripts/trial.sh" --step-run "$dir" "$@" 3>&1 >"$log" 2>&1 || { outcome=FAILED failed=$((failed + 1)); }
	[ $outcome = passed ] || grep -E '^ *(--- FAIL|FAIL|panic:|fatal error:|WARNING: DATA RACE)' "$log" || tail -n 20 "$log"
	end=$(date +%s)
	spans=""
	[ $((begin / 3600)) -eq $((end / 3600)) ] || spans=", over the top of an hour"
	echo "Run $n $outcome after $(((end - begin) / 60)) min $(((end - begin) % 60)) s$spans."
done
echo "$((runs - failed)) of $runs runs passed."
[ $failed -eq 0 ]
