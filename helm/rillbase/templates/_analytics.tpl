{{/*
The files of analytics tables: one volume, which all processes share that accept uploads, answer
queries or move files from stage to stage; or an S3-compatible store, and no volume.
*/}}
{{- define "rillbase.analyticsFolder" -}}
/var/lib/rillbase-analytics
{{- end -}}

{{- define "rillbase.analyticsVolume" -}}
{{- if and .Values.analytics.enabled (not .Values.analytics.storage.s3.url) }}true{{ end -}}
{{- end -}}

{{/* The location of the files, as plain variables. */}}
{{- define "rillbase.analyticsVariables" -}}
{{- $store := .Values.analytics.storage.s3 -}}
RILLBASE_ANALYTICS_DIR: {{ default (include "rillbase.analyticsFolder" .) $store.url | quote }}
{{- if $store.url }}
{{- with $store.endpoint }}
AWS_ENDPOINT_URL: {{ . | quote }}
{{- end }}
{{- with $store.region }}
AWS_REGION: {{ . | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The keys of the store, from a Secret; without one, pods have the permissions of their accounts. */}}
{{- define "rillbase.analyticsSecrets" -}}
{{- $store := .Values.analytics.storage.s3 -}}
{{- if and .Values.analytics.enabled $store.url $store.secret }}
{{- range $name, $key := dict "AWS_ACCESS_KEY_ID" "access-key-id" "AWS_SECRET_ACCESS_KEY" "secret-access-key" }}
- name: {{ $name }}
  valueFrom: { secretKeyRef: { name: {{ $store.secret }}, key: {{ $key }} } }
{{- end }}
{{- end }}
{{- end -}}

{{/* The port of the store. */}}
{{- define "rillbase.analyticsPort" -}}
{{- $url := urlParse (default "https://amazon" .Values.analytics.storage.s3.endpoint) -}}
{{- if contains ":" $url.host }}{{ splitList ":" $url.host | last }}{{ else }}{{ ternary 80 443 (eq $url.scheme "http") }}{{ end -}}
{{- end -}}

{{/* Mounts of processes that use the files, besides their own scratch space. */}}
{{- define "rillbase.dataMounts" -}}
{{- include "rillbase.scratchMounts" . }}
{{- if include "rillbase.analyticsVolume" . }}
- { name: analytics, mountPath: {{ include "rillbase.analyticsFolder" . }} }
{{- end }}
{{- end -}}

{{- define "rillbase.dataVolumes" -}}
{{- include "rillbase.scratchVolume" . }}
{{- if include "rillbase.analyticsVolume" . }}
- name: analytics
  persistentVolumeClaim:
    claimName: {{ default (include "rillbase.part" (list . "analytics")) .Values.analytics.storage.existingClaim }}
{{- end }}
{{- end -}}
