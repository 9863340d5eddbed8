{{- define "rillbase.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* The release's name, including the chart's name; short enough for the suffixes. */}}
{{- define "rillbase.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "rillbase.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "rillbase.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The selector of a part's pods. A Deployment's selector is immutable. (list $ "part") */}}
{{- define "rillbase.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "rillbase.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{/* Labels of a part's objects. (list $ "part") */}}
{{- define "rillbase.labels" -}}
{{- $root := index . 0 -}}
{{ include "rillbase.selector" . }}
app.kubernetes.io/part-of: rillbase
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Name, labels and annotations of an object. (list $ "part" "name") */}}
{{- define "rillbase.metadata" -}}
{{- $root := index . 0 -}}
name: {{ index . 2 }}
namespace: {{ $root.Release.Namespace }}
labels: {{- include "rillbase.labels" (list $root (index . 1)) | nindent 2 }}
{{- with $root.Values.commonAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* A part's name. (list $ "part") */}}
{{- define "rillbase.part" -}}
{{- printf "%s-%s" (include "rillbase.fullname" (index . 0)) (index . 1) -}}
{{- end -}}

{{/* An image, by its digest if there is one. (list $ $image) */}}
{{- define "rillbase.image" -}}
{{- $root := index . 0 -}}{{- $image := index . 1 -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default $root.Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "rillbase.secret" -}}
{{- default (include "rillbase.part" (list . "secrets")) .Values.secrets.existing -}}
{{- end -}}

{{/* The host of the public URL. */}}
{{- define "rillbase.host" -}}
{{- (urlParse .Values.publicUrl).hostname -}}
{{- end -}}

{{- define "rillbase.postgresHost" -}}
{{- if .Values.database.internal -}}
{{- printf "%s.%s.svc" (include "rillbase.part" (list . "postgresql")) .Release.Namespace -}}
{{- else -}}
{{- required "database.host is needed with an external database" .Values.database.host -}}
{{- end -}}
{{- end -}}

{{/* The prefix of the names of tenants' namespaces, and of this release's cluster-wide objects. */}}
{{- define "rillbase.clusters" -}}
{{- if .Values.clusters.name -}}
{{- .Values.clusters.name -}}
{{- else -}}
{{- $whole := printf "%s-%s" .Release.Namespace (include "rillbase.fullname" .) -}}
{{- printf "%s-%s" ($whole | trunc 20 | trimSuffix "-") ($whole | sha256sum | trunc 6) -}}
{{- end -}}
{{- end -}}

{{/* The account of the provisioner. */}}
{{- define "rillbase.provisioner" -}}
{{- printf "%s-provisioner" (include "rillbase.clusters" .) -}}
{{- end -}}
