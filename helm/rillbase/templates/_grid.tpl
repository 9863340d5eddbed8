{{/* What tells the grid where its nodes run; all else about executors is in Spark's own file. */}}
{{- define "rillbase.gridVariables" -}}
- name: RILLBASE_GRID
  value: spark
{{- if eq .Values.grid.master "kubernetes" }}
- name: RILLBASE_GRID_MASTER
  value: k8s://https://kubernetes.default.svc
- name: SPARK_CONF_DIR
  value: /etc/rillbase/spark
- name: SPARK_LOCAL_IP
  valueFrom: { fieldRef: { fieldPath: status.podIP } }
- name: POD_NAME
  valueFrom: { fieldRef: { fieldPath: metadata.name } }
{{- end }}
{{- end -}}
