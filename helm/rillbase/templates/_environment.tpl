{{/*
Settings of all server processes. Secrets are references; the kubelet assembles URLs, in which
`$(NAME)` is a variable above, so that no manifest contains a secret.
*/}}
{{- define "rillbase.environment" -}}
{{- include "rillbase.secretVariables" (list . (dict "RILLBASE_SECRET_KEY" "secret-key" "RILLBASE_KEY_PEPPER" "key-pepper" "RILLBASE_METRICS_TOKEN" "metrics-token" "RILLBASE_EMAIL_URL" "email-url" "STORAGE_TOKEN" "node-token")) }}
{{- include "rillbase.valkeyVariables" . }}
{{- include "rillbase.analyticsSecrets" . }}
- name: STORAGE_URL
  value: redis://admin:$(STORAGE_TOKEN)@{{ include "rillbase.part" (list . "storage-node") }}:6390
- name: DATABASE_URL
  value: {{ printf "postgresql://%s:%v/%s?sslmode=%s" (include "rillbase.postgresHost" .) .Values.database.port .Values.database.name .Values.database.sslmode }}
{{- include "rillbase.plainVariables" . }}
{{- end -}}

{{/* The same for the Job that creates roles and tables: it logs in as the administrator. */}}
{{- define "rillbase.administration" -}}
{{- include "rillbase.secretVariables" (list . (dict "RILLBASE_SECRET_KEY" "secret-key" "RILLBASE_KEY_PEPPER" "key-pepper" "RILLBASE_EMAIL_URL" "email-url")) }}
{{- if .Values.database.internal }}
{{- include "rillbase.secretVariables" (list . (dict "POSTGRES_PASSWORD" "postgresql-password")) }}
- name: DATABASE_URL
  value: {{ printf "postgresql://postgres:$(POSTGRES_PASSWORD)@%s:5432/%s" (include "rillbase.postgresHost" .) .Values.database.name }}
{{- else }}
{{- include "rillbase.secretVariables" (list . (dict "DATABASE_URL" "database-admin-url")) }}
{{- end }}
{{- include "rillbase.plainVariables" . }}
{{- end -}}

{{/* (list $ (dict "VARIABLE" "key of the secret")) */}}
{{- define "rillbase.secretVariables" -}}
{{- $secret := include "rillbase.secret" (index . 0) }}
{{- range $name, $key := index . 1 }}
- name: {{ $name }}
  valueFrom: { secretKeyRef: { name: {{ $secret }}, key: {{ $key }} } }
{{- end }}
{{- end -}}

{{- define "rillbase.valkeyVariables" -}}
{{- if .Values.valkey.internal }}
{{- include "rillbase.secretVariables" (list . (dict "VALKEY_PASSWORD" "valkey-password")) }}
- name: REDIS_URL
  value: redis://:$(VALKEY_PASSWORD)@{{ include "rillbase.part" (list . "valkey-broker") }}:6379/0
- name: EVENTS_URL
  value: redis://:$(VALKEY_PASSWORD)@{{ include "rillbase.part" (list . "valkey-events") }}.{{ .Release.Namespace }}.svc:6379/0
{{- else }}
{{- include "rillbase.secretVariables" (list . (dict "REDIS_URL" "valkey-url")) }}
{{- if .Values.valkey.eventsInSecret }}
{{- include "rillbase.secretVariables" (list . (dict "EVENTS_URL" "events-url")) }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "rillbase.plainVariables" -}}
{{- $hosts := prepend .Values.hosts (include "rillbase.host" .) -}}
{{- $own := list (include "rillbase.part" (list . "app")) (printf "%s.%s.svc" (include "rillbase.part" (list . "app")) .Release.Namespace) -}}
{{- $plain := dict
  "RILLBASE_ENV" "production"
  "RILLBASE_PUBLIC_URL" .Values.publicUrl
  "RILLBASE_HOSTS" (join "," (concat $hosts $own | uniq))
  "RILLBASE_TRUSTED_PROXIES" (join "," .Values.trustedProxies)
  "RILLBASE_SIGN_UP" .Values.signUp
  "RILLBASE_EMAIL_FROM" .Values.emailFrom
  "RILLBASE_LOG_FORMAT" .Values.log.format
  "RILLBASE_LOG_LEVEL" .Values.log.level
  "RILLBASE_DATABASE_POOL_SIZE" .Values.database.poolSize
  "RILLBASE_DATA_DIR" "/var/lib/rillbase"
  "OTEL_EXPORTER_OTLP_ENDPOINT" .Values.tracesEndpoint
  "HOME" "/tmp"
-}}
{{- if .Values.clusters.enabled }}{{ $plain = merge $plain (include "rillbase.clusterVariables" . | fromYaml) }}{{ end }}
{{- if .Values.analytics.enabled }}{{ $plain = merge $plain (include "rillbase.analyticsVariables" . | fromYaml) }}{{ end }}
{{- with .Values.sources.networks }}{{ $_ := set $plain "RILLBASE_SOURCE_NETWORKS" (join "," .) }}{{ end }}
{{- range $name, $value := merge (deepCopy .Values.settings) $plain }}
- name: {{ $name }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end -}}

{{/* Settings of all processes that use tenants' clusters. */}}
{{- define "rillbase.clusterVariables" -}}
{{- $images := list (printf "default=%s" (include "rillbase.image" (list . .Values.images.spark))) -}}
{{- range $name, $image := .Values.clusters.images }}{{ $images = append $images (printf "%s=%s" $name $image) }}{{ end -}}
RILLBASE_CLUSTERS: kubernetes
RILLBASE_CLUSTERS_NAME: {{ include "rillbase.clusters" . }}
RILLBASE_CLUSTERS_NAMESPACE: {{ .Release.Namespace }}
RILLBASE_CLUSTERS_IMAGES: {{ join "," $images | quote }}
RILLBASE_CLUSTERS_API_NETWORKS: {{ join "," .Values.networkPolicies.apiServer.cidrs | quote }}
{{- end -}}
