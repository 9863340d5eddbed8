{{/*
Settings of all pods. They are stricter than the "restricted" Pod Security Standard: only volumes
are writable, and the API server's token is mounted only where it is used.
*/}}

{{/* (list $ "part" $values "serviceAccount" usesApi) */}}
{{- define "rillbase.podBasics" -}}
{{- $root := index . 0 -}}{{- $part := index . 1 -}}{{- $values := index . 2 -}}
serviceAccountName: {{ index . 3 }}
automountServiceAccountToken: {{ index . 4 }}
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
{{- with $root.Values.images.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- include "rillbase.placement" (list $root $part $values) | nindent 0 }}
{{- end -}}

{{/* Spreads replicas over machines, if possible. (list $ "part" $values) */}}
{{- define "rillbase.placement" -}}
{{- $values := index . 2 -}}
topologySpreadConstraints:
{{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "rillbase.selector" (list (index $ 0) (index $ 1)) | nindent 8 }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "rillbase.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: { drop: [ALL] }
{{- end -}}

{{/* Labels and annotations of a pod template. The checksum restarts pods after a change of a secret or
setting. (list $ "part" $values) */}}
{{- define "rillbase.podMetadata" -}}
{{- $root := index . 0 -}}
labels: {{- include "rillbase.labels" (list $root (index . 1)) | nindent 2 }}
annotations:
  kubectl.kubernetes.io/default-container: {{ index . 1 }}
  rillbase.dev/settings: {{ $root.Values.settings | toJson | sha256sum | trunc 16 | quote }}
  {{- with (index . 2).podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* The image of a container that runs our programs. (list $ $image) */}}
{{- define "rillbase.containerImage" -}}
image: {{ include "rillbase.image" . }}
imagePullPolicy: {{ (index . 0).Values.images.pullPolicy }}
securityContext: {{- include "rillbase.containerSecurity" (index . 0) | nindent 2 }}
{{- end -}}

{{/* The directories that our programs may write to. */}}
{{- define "rillbase.scratchMounts" -}}
- { name: scratch, mountPath: /tmp, subPath: tmp }
- { name: scratch, mountPath: /var/lib/rillbase, subPath: data }
{{- end -}}

{{- define "rillbase.scratchVolume" -}}
- name: scratch
  emptyDir: { sizeLimit: 2Gi }
{{- end -}}

{{/* Waits until processes of this release can start. (list $ $image "arguments") */}}
{{- define "rillbase.waiting" -}}
{{- $root := index . 0 -}}
name: wait
{{ include "rillbase.containerImage" (list $root (index . 1)) }}
command: [python, manage.py, await_servers, --patience-s, {{ $root.Values.upgradePatienceSeconds | quote }}
{{- range index . 2 }}, {{ . | quote }}{{ end }}]
env: {{- include "rillbase.environment" $root | trim | nindent 2 }}
resources:
  requests: { cpu: 50m, memory: 128Mi }
  limits: { memory: 256Mi }
volumeMounts: {{- include "rillbase.scratchMounts" $root | nindent 2 }}
{{- end -}}

{{/* Probes of a process with an HTTP server. Startup may take long; a dead process is detected within 30 s. */}}
{{- define "rillbase.httpProbes" -}}
startupProbe:
  httpGet: { path: /healthz, port: http }
  periodSeconds: 2
  failureThreshold: 90
livenessProbe:
  httpGet: { path: /healthz, port: http }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: { path: /readyz, port: http }
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 2
{{- end -}}

{{/* Probes of a process that updates a file's modification time. (list "file" seconds) */}}
{{- define "rillbase.fileProbes" -}}
startupProbe:
  exec: { command: [test, -s, {{ index . 0 }}] }
  periodSeconds: 2
  failureThreshold: 90
livenessProbe:
  exec:
    command:
      - sh
      - -c
      - test $(( $(date +%s) - $(stat -c %Y {{ index . 0 }}) )) -lt {{ index . 1 }}
  periodSeconds: 30
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  exec: { command: [test, -s, {{ index . 0 }}] }
  periodSeconds: 10
  timeoutSeconds: 5
{{- end -}}

{{/* Reject a memory limit of an app pod that its own settings exceed: the kernel would kill the pod. In addition
     to live queries and decoders, the server and its incoming messages take up to 384 MiB. */}}
{{- define "rillbase.checkAppMemory" -}}
{{- $app := .Values.app -}}
{{- $limit := dig "limits" "memory" "" $app.resources | toString -}}
{{- $uploads := mul $app.uploadWorkers $app.uploadMemoryMib -}}
{{- $needed := add 384 $app.liveMemoryMib $uploads -}}
{{- $mib := -1 -}}
{{- if regexMatch "^[0-9]+Mi$" $limit -}}
{{- $mib = trimSuffix "Mi" $limit | int64 -}}
{{- else if regexMatch "^[0-9]+Gi$" $limit -}}
{{- $mib = mul 1024 (trimSuffix "Gi" $limit | int64) -}}
{{- else if $limit -}}
{{- fail (printf "app.resources.limits.memory is %s: use the unit Mi or Gi" $limit) -}}
{{- end -}}
{{- if and (ge $mib 0) (lt $mib $needed) -}}
{{- fail (printf "app.resources.limits.memory is %s, but app.liveMemoryMib, app.uploadWorkers and app.uploadMemoryMib need %dMi: raise it or lower them" $limit $needed) -}}
{{- end -}}
{{- end -}}
