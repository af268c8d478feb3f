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

{{- /* Mistakes that Kubernetes would not notice. */ -}}
{{- define "weir.check" -}}
{{- if not (or .Values.tokens.content .Values.tokens.existingSecret) }}
{{- fail "tokens: set tokens.content to lines such as \"alice admin TOKEN\" and \"shop check TOKEN\" (create a token with: openssl rand -hex 32), or tokens.existingSecret" }}
{{- end }}
{{- if and (include "weir.many" .) (not (include "weir.shared" .)) }}
{{- fail "store: several replicas must share a Redis, or each would allow the whole limit; set store.url, or replicas: 1 without autoscaling" }}
{{- end }}
{{- if .Values.settings.store }}
{{- fail "settings.store: settings are in a ConfigMap, and a URL may have a password; set store.url, which is in a Secret" }}
{{- end }}
{{- if and .Values.rules.inRedis (not (include "weir.shared" .)) }}
{{- fail "rules.inRedis: there is no Redis; set store.url" }}
{{- end }}
{{- if and (eq .Values.mode "gateway") (not .Values.gateway.upstream) }}
{{- fail "gateway.upstream: the mode gateway needs the URL of your service" }}
{{- end }}
{{- end }}
