{{/* Where the grid's nodes run; other settings of executors are in Spark's configuration file. */}}
{{- define "rillbase.gridVariables" -}}
- name: RILLBASE_GRID
  value: spark
{{- if eq .Values.grid.master "kubernetes" }}
- name: RILLBASE_GRID_MASTER
  value: k8s://https://kubernetes.default.svc
{{ include "rillbase.sparkVariables" . }}
{{- end }}
{{- end -}}
