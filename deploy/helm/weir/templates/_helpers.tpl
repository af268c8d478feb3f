{{- define "weir.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "weir.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains .Chart.Name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "weir.selector" -}}
app.kubernetes.io/name: {{ include "weir.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "weir.labels" -}}
{{ include "weir.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "weir.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ default (include "weir.fullname" .) .Values.serviceAccount.name }}{{ else }}{{ default "default" .Values.serviceAccount.name }}{{ end }}
{{- end }}

{{- define "weir.many" -}}
{{- if or .Values.autoscaling.enabled (gt (int .Values.replicas) 1) }}yes{{ end }}
{{- end }}

{{- define "weir.shared" -}}
{{- if or .Values.store.url .Values.store.existingSecret }}yes{{ end }}
{{- end }}

{{- /* The revision of the release that set store.url. The Secret keeps it beside the URL, so that an upgrade
that fails half-way does not lose it. Without a cluster, lookup finds nothing, and the revision is always 1. */ -}}
{{- define "weir.storeRevision" -}}
{{- $kept := dig "data" dict (lookup "v1" "Secret" .Release.Namespace (include "weir.fullname" .)) }}
{{- $same := eq (get $kept "store-url") (b64enc .Values.store.url) }}
{{- ternary (get $kept "store-revision" | b64dec) "" $same | default .Release.Revision }}
{{- end }}

{{- /* The servers and the database in store.url, without what may be a password; nothing if that is not certain. */ -}}
{{- define "weir.storeAddress" -}}
{{- $form := "^[a-z+]+://(?:[^@?#]*@)?([^@?#]*)(?:[?][^@#]*)?$" }}
{{- if regexMatch $form .Values.store.url }}{{ regexReplaceAll $form .Values.store.url "${1}" }}{{ end }}
{{- end }}

{{- /* The rules in rules.content, unless they are the default, which has none. */ -}}
{{- define "weir.ownRules" -}}
{{- if ne (trim .Values.rules.content) "rules: []" }}{{ trim .Values.rules.content }}{{ end }}
{{- end }}

{{- /* TLS is on, and clients must have a certificate: by a Secret, or by files that extraVolumes bring. */ -}}
{{- define "weir.tls" -}}
{{- if or .Values.tls.existingSecret .Values.settings.tls_cert }}yes{{ end }}
{{- end }}

{{- define "weir.clientCert" -}}
{{- if or .Values.tls.requireClientCert .Values.settings.tls_client_ca }}yes{{ end }}
{{- end }}

{{- /* How Kubernetes asks a path. It has no client certificate; if weir requires one, it only connects. */ -}}
{{- define "weir.ask" -}}
{{- if include "weir.clientCert" .root -}}
tcpSocket: {port: http}
{{- else -}}
httpGet: {path: {{ .path }}, port: http{{ if include "weir.tls" .root }}, scheme: HTTPS{{ end }}}
{{- end }}
{{- end }}

{{- /* 90 % of the memory limit, in bytes. The rest is for what the Go runtime does not count. */ -}}
{{- define "weir.goMemory" -}}
{{- $memory := dig "limits" "memory" "" .Values.resources | toString }}
{{- if $memory }}
{{- $number := regexFind "^[0-9]*[.]?[0-9]+(e[+]?[0-9]+)?" $memory }}
{{- $factors := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 }}
{{- $factor := get $factors (trimPrefix $number $memory) }}
{{- if or (not $number) (not $factor) }}
{{- fail (printf "resources.limits.memory: %q is invalid; write for example 512Mi" $memory) }}
{{- end }}
{{- printf "%.0f" (floor (mulf 0.9 (float64 $number) $factor)) }}
{{- end }}
{{- end }}

{{- /* Mistakes that Kubernetes would not notice. */ -}}
{{- define "weir.check" -}}
{{- if not (or .Values.tokens.content .Values.tokens.existingSecret) }}
{{- fail "tokens: set tokens.content to lines such as \"alice admin TOKEN\" and \"shop check TOKEN\" (create a token with: openssl rand -hex 32), or tokens.existingSecret" }}
{{- end }}
{{- if and (include "weir.many" .) (not (include "weir.shared" .)) }}
{{- fail "store: several replicas must share a Redis, or each would allow the whole limit; set store.url, or replicas: 1 without autoscaling" }}
{{- end }}
{{- if and .Values.store.url .Values.store.existingSecret }}
{{- fail "store.existingSecret: store.url is set, too; set one of them to \"\"" }}
{{- end }}
{{- if and .Values.tokens.content .Values.tokens.existingSecret }}
{{- fail "tokens.existingSecret: tokens.content is set, too; set one of them to \"\"" }}
{{- end }}
{{- if .Values.settings.store }}
{{- fail "settings.store: settings are in a ConfigMap, and a URL may have a password; set store.url, which is in a Secret" }}
{{- end }}
{{- range $name, $port := dict "http" 8080 "grpc" 8081 "listen" 8000 }}
{{- $address := get $.Values.settings $name | default "" | toString }}
{{- if not (regexMatch (printf "^((0[.]0[.]0[.]0|\\[::\\])?:%d)?$" $port) $address) }}
{{- fail (printf "settings.%s: %q is not where the Service, the probes and the NetworkPolicy expect weir; remove it, or write 0.0.0.0:%d or [::]:%d" $name $address $port $port) }}
{{- end }}
{{- end }}
{{- if and .Values.rules.inRedis (not (include "weir.shared" .)) }}
{{- fail "rules.inRedis: there is no Redis; set store.url" }}
{{- end }}
{{- if and .Values.rules.existingConfigMap .Values.rules.inRedis }}
{{- fail "rules.existingConfigMap: rules.inRedis is set, too; choose one" }}
{{- end }}
{{- if and .Values.rules.existingConfigMap (include "weir.ownRules" .) }}
{{- fail "rules.existingConfigMap: rules.content is set, too; set one of them to \"\"" }}
{{- end }}
{{- if and .Values.rules.inRedis (include "weir.ownRules" .) }}
{{- fail "rules.inRedis: rules.content is set, too, and is not written to Redis; set it to \"\", and write the rules with weir rules put" }}
{{- end }}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) }}
{{- fail "autoscaling.minReplicas: it is greater than autoscaling.maxReplicas" }}
{{- end }}
{{- if and .Values.tls.existingSecret .Values.settings.tls_cert }}
{{- fail "settings.tls_cert: tls.existingSecret is set, too; choose one" }}
{{- end }}
{{- if and .Values.tls.requireClientCert (not .Values.tls.existingSecret) }}
{{- fail "tls.requireClientCert: set tls.existingSecret, whose key ca.crt has the CAs of the clients" }}
{{- end }}
{{- if and (include "weir.clientCert" .) (not .Values.tls.probeSecret) }}
{{- fail "tls.probeSecret: weir requires client certificates, so the readiness probe needs one; name a Secret with tls.crt and tls.key" }}
{{- end }}
{{- if and .Values.tls.probeSecret (not (include "weir.clientCert" .)) }}
{{- fail "tls.probeSecret: weir requires no client certificates; set tls.requireClientCert, or set tls.probeSecret to \"\"" }}
{{- end }}
{{- if and .Values.prometheusRule.enabled (ne (include "weir.name" .) "weir") }}
{{- fail "prometheusRule: the rules expect the job weir, and with nameOverride it has another name" }}
{{- end }}
{{- if and .Values.prometheusRule.enabled (not (contains "groups:" (.Files.Get "weir-rules.yaml"))) }}
{{- fail "prometheusRule: weir-rules.yaml of the chart is a symbolic link that your system did not follow; replace it by a copy of deploy/prometheus/weir-rules.yaml" }}
{{- end }}
{{- if and (eq .Values.mode "gateway") (not .Values.gateway.upstream) }}
{{- fail "gateway.upstream: the mode gateway needs the URL of your service" }}
{{- end }}
{{- end }}
