{{/*
Both directions of a connection: ingress of the server from its callers, and their egress to it.
No ports means all ports. (list $ "server" (list "caller") (list port))
*/}}
{{- define "rillbase.allowed" -}}
{{- $root := index . 0 -}}{{- $server := index . 1 -}}{{- $callers := index . 2 -}}{{- $ports := index . 3 -}}
{{- $name := printf "%s-%s" (include "rillbase.part" (list $root "to")) $server -}}
{{- if eq $server "grid" }}{{ $name = printf "%s-from-%s" $name (first $callers) }}{{ end -}}
{{- $instance := dict "app.kubernetes.io/name" (include "rillbase.name" $root) "app.kubernetes.io/instance" $root.Release.Name -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{- include "rillbase.metadata" (list $root "network" $name) | nindent 2 }}
spec:
  podSelector:
    matchLabels: {{- include "rillbase.selector" (list $root $server) | nindent 6 }}
  policyTypes: [Ingress]
  ingress:
    - from:
        - podSelector:
            matchLabels: {{- toYaml $instance | nindent 14 }}
            matchExpressions:
              - { key: app.kubernetes.io/component, operator: In, values: {{ toJson $callers }} }
      {{- if $ports }}
      ports:
        {{- range $ports }}
        - { port: {{ . }}, protocol: TCP }
        {{- end }}
      {{- end }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{- include "rillbase.metadata" (list $root "network" (printf "%s-out" $name)) | nindent 2 }}
spec:
  podSelector:
    matchLabels: {{- toYaml $instance | nindent 6 }}
    matchExpressions:
      - { key: app.kubernetes.io/component, operator: In, values: {{ toJson $callers }} }
  policyTypes: [Egress]
  egress:
    - to:
        - podSelector:
            matchLabels: {{- include "rillbase.selector" (list $root $server) | nindent 14 }}
      {{- if $ports }}
      ports:
        {{- range $ports }}
        - { port: {{ . }}, protocol: TCP }
        {{- end }}
      {{- end }}
{{- end -}}
