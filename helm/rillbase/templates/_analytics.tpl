{{/*
The files of analytics tables: one volume, which all write to who take uploads, answer queries or
move files from stage to stage.
*/}}
{{- define "rillbase.analyticsFolder" -}}
/var/lib/rillbase-analytics
{{- end -}}

{{/* What those mount who have to do with the files, besides their own scratch space. */}}
{{- define "rillbase.dataMounts" -}}
{{- include "rillbase.scratchMounts" . }}
{{- if .Values.analytics.enabled }}
- { name: analytics, mountPath: {{ include "rillbase.analyticsFolder" . }} }
{{- end }}
{{- end -}}

{{- define "rillbase.dataVolumes" -}}
{{- include "rillbase.scratchVolume" . }}
{{- if .Values.analytics.enabled }}
- name: analytics
  persistentVolumeClaim:
    claimName: {{ default (include "rillbase.part" (list . "analytics")) .Values.analytics.storage.existingClaim }}
{{- end }}
{{- end -}}
