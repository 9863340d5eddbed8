{{/* A volume claim of a StatefulSet. (list "name" $storage) */}}
{{- define "rillbase.claim" -}}
metadata: { name: {{ index . 0 }} }
spec:
  accessModes: [ReadWriteOnce]
  {{- with (index . 1).className }}
  storageClassName: {{ . }}
  {{- end }}
  resources:
    requests: { storage: {{ (index . 1).size }} }
{{- end -}}
