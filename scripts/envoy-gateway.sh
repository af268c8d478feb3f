#!/bin/sh
# Runs weir under the control plane of Envoy Gateway.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
version=${1:-v1.9.1}

case $version in
v*) ;;
*)
	cat <<'END'
Usage: scripts/envoy-gateway.sh [VERSION]

Builds Envoy Gateway (v1.9.1 by default; that takes half an hour on two cores), runs it with its
files as the source, without Kubernetes and without Envoy, and lets weir get its limits from it:
those of a BackendTrafficPolicy, a change of it, and the same after a restart of Envoy Gateway.
It uses the ports that Envoy Gateway listens on, 18000 to 19001 and 8081.
END
	exit 2
	;;
esac

dir=$(mktemp -d)
gateway="" weir=""
stop() { [ -z "$1" ] || { kill "$1" && wait "$1"; } 2>/dev/null || true; }
trap 'stop "$weir"; stop "$gateway"; rm -rf "$dir"' EXIT
fail() {
	echo "$1" >&2
	cat "$dir/weir.log" >&2
	exit 1
}

echo "building"
GOBIN="$here/bin" go install "github.com/envoyproxy/gateway/cmd/envoy-gateway@$version"
(cd "$here" && go build -o "$dir/weir" ./cmd/weir)

mkdir "$dir/resources" "$dir/empty"
cat >"$dir/gateway.yaml" <<END
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: EnvoyGateway
gateway: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}
provider:
  type: Custom
  custom:
    resource: {type: File, file: {paths: ["$dir/resources"]}}
    infrastructure:
      type: Host
      host: {configHome: $dir/config, dataHome: $dir/data, stateHome: $dir/state, runtimeDir: $dir/run}
rateLimit: {backend: {type: Redis, redis: {url: "redis.default.svc:6379"}}}
extensionApis: {enableBackend: true}
END

# limits puts the resources in place, with a limit of so many requests an hour.
limits() {
	cat >"$dir/new" <<END
{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: eg},
 spec: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: eg, namespace: default},
 spec: {gatewayClassName: eg, listeners: [{name: http, protocol: HTTP, port: 8888}]}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: shop, namespace: default},
 spec: {parentRefs: [{name: eg}], rules: [{backendRefs: [{group: gateway.envoyproxy.io, kind: Backend, name: shop}]}]}}
---
{apiVersion: gateway.envoyproxy.io/v1alpha1, kind: Backend, metadata: {name: shop, namespace: default},
 spec: {endpoints: [{ip: {address: 127.0.0.1, port: 3000}}]}}
---
{apiVersion: gateway.envoyproxy.io/v1alpha1, kind: BackendTrafficPolicy, metadata: {name: limits, namespace: default},
 spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}], rateLimit: {type: Global, global: {rules: [
  {clientSelectors: [{headers: [{name: x-user-id, type: Distinct}]}], limit: {requests: $1, unit: Hour}}]}}}}
END
	mv "$dir/new" "$dir/resources/all.yaml"
}

start() {
	"$here/bin/envoy-gateway" server --config-path "$dir/gateway.yaml" >"$dir/gateway.log" 2>&1 &
	gateway=$!
}

# expect waits until weir has a limit of so many requests an hour.
expect() {
	for _ in $(seq 60); do
		sleep 1
		curl -sf "$url/rlconfig" | grep -q "unit=HOUR requests_per_unit=$1," && return
	done
	fail "weir did not get the limit of $1 requests an hour"
}

"$here/bin/envoy-gateway" certgen --local --config-home "$dir/config" >/dev/null 2>&1
limits 3
start
certs="$dir/config/certs/envoy-rate-limit"
cd "$dir/empty"
"$dir/weir" serve --http 127.0.0.1:0 --grpc 127.0.0.1:0 \
	--envoy-xds localhost:18001 --envoy-xds-node-id envoy-ratelimit --envoy-xds-tls-san envoy-gateway \
	--envoy-xds-tls-ca "$certs/ca.crt" --envoy-xds-tls-cert "$certs/tls.crt" --envoy-xds-tls-key "$certs/tls.key" >"$dir/weir.log" 2>&1 &
weir=$!
until url=$(sed -n 's/^weir listens on \(http:[^ ]*\) .*/\1/p' "$dir/weir.log") && [ -n "$url" ]; do
	kill -0 "$weir" || fail "weir did not start"
	sleep 1
done

expect 3
echo "weir has the limit of the policy"
name=$(curl -sf "$url/rlconfig" | sed 's/^default\/eg\/http\.\(.*\)\.\(rule[^:]*\): .*/\1 \2/')
route=${name% *} rule=${name#* }
half=$(((${#route} - 1) / 2)) # a descriptor has its name and its value, which are the same, joined by an underscore
route=$(printf %s "$route" | cut -c "1-$half")
for want in 200 200 200 429; do
	got=$(curl -s -o /dev/null -w '%{http_code}' "$url/json" -d "{\"domain\": \"default/eg/http\", \"descriptors\": [{\"entries\": [
		{\"key\": \"$route\", \"value\": \"$route\"}, {\"key\": \"$rule\", \"value\": \"alice\"}]}]}")
	[ "$got" = "$want" ] || fail "a request was answered with $got, want $want"
done
echo "weir allows 3 requests and denies the fourth"
limits 5
expect 5
echo "weir has the limit of the changed policy"
stop "$gateway"
limits 7
start
expect 7
echo "weir has the limit of the policy after a restart of Envoy Gateway"
