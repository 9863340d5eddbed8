{{/* What tells the grid where its nodes run; all else about executors is in Spark's own file. */}}
{{- define "rillbase.gridVariables" -}}
- name: RILLBASE_GRID
  value: spark
{{- if eq .Values.grid.master "kubernetes" }}
- name: RILLBASE_GRID_MASTER
  value: k8s://https://kubernetes.default.svc
{{ include "rillbase.sparkVariables" . }}
{{- end }}
{{- end -}}
