{{/*
A driver whose executors are separate pods: its permissions, Spark's configuration, and the template
of the pods. The driver's volumes contain the settings under /etc/rillbase/spark.
(list $ "driver" $values "executor" "template of mounts" "template of volumes")
*/}}
{{- define "rillbase.sparkExecutors" -}}
{{- $root := index . 0 -}}{{- $driver := index . 1 -}}{{- $values := index . 2 -}}{{- $part := index . 3 -}}
{{- $name := include "rillbase.part" (list $root $driver) -}}
# The driver's permissions: it creates, watches and removes its executors' pods.
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{- include "rillbase.metadata" (list $root $driver $name) | nindent 2 }}
rules:
  - apiGroups: [""]
    resources: [pods]
    verbs: [get, list, watch, create, delete, deletecollection]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{- include "rillbase.metadata" (list $root $driver $name) | nindent 2 }}
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ $name }} }
subjects:
  - { kind: ServiceAccount, name: {{ $name }}, namespace: {{ $root.Release.Namespace }} }
---
# Spark's configuration, and the template of executors' pods. Executors get secrets by references in
# the template, not through Spark's settings, which everyone who may view pods could read.
apiVersion: v1
kind: ConfigMap
metadata: {{- include "rillbase.metadata" (list $root $driver (printf "%s-spark" $name)) | nindent 2 }}
data:
  spark-defaults.conf: |
    spark.kubernetes.namespace {{ $root.Release.Namespace }}
    spark.kubernetes.container.image {{ include "rillbase.image" (list $root $root.Values.images.spark) }}
    spark.kubernetes.container.image.pullPolicy {{ $root.Values.images.pullPolicy }}
    spark.kubernetes.executor.podTemplateFile /etc/rillbase/spark/pod.yaml
    spark.kubernetes.executor.podTemplateContainerName executor
    spark.kubernetes.executor.disableConfigMap true
    spark.kubernetes.executor.request.cores {{ $values.executor.requestCpu }}
    spark.kubernetes.authenticate.oauthTokenFile /var/run/secrets/kubernetes.io/serviceaccount/token
    spark.kubernetes.authenticate.caCertFile /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
    # Executors belong to the driver's pod and are removed with it.
    spark.kubernetes.driver.pod.name ${env:POD_NAME}
    spark.kubernetes.driver.service.deleteOnTermination false
    spark.kubernetes.driver.ownPersistentVolumeClaim false
    spark.kubernetes.driver.reusePersistentVolumeClaim false
    spark.driver.host {{ printf "%s.%s.svc" $name $root.Release.Namespace }}
    spark.driver.bindAddress 0.0.0.0
    spark.driver.port 7078
    spark.driver.blockManager.port 7079
    spark.executor.instances {{ $values.executor.count }}
    spark.executor.cores {{ $values.executor.cores }}
    spark.executor.memory {{ $values.executor.memory }}
    spark.executor.memoryOverhead {{ $values.executor.memoryOverhead }}
    # Calls to driver and executors require the secret. As a file, it is in no pod's description.
    spark.authenticate.secret.file {{ include "rillbase.sparkSecretFolder" . }}/spark-secret
    # Jobs are submitted immediately and run as soon as there is an executor.
    spark.scheduler.minRegisteredResourcesRatio 0
  pod.yaml: |
    apiVersion: v1
    kind: Pod
    metadata:
      labels: {{- include "rillbase.labels" (list $root $part) | nindent 8 }}
    spec:
      {{- include "rillbase.podBasics" (list $root $part $values (include "rillbase.part" (list $root "server")) false) | nindent 6 }}
      containers:
        - name: executor
          {{- include "rillbase.containerImage" (list $root $root.Values.images.spark) | nindent 10 }}
          env: {{- include "rillbase.environment" $root | trim | nindent 12 }}
          volumeMounts:
            {{- include (index . 4) $root | nindent 12 }}
            {{- include "rillbase.sparkSecretMount" $root | nindent 12 }}
      volumes:
        {{- include (index . 5) $root | nindent 8 }}
        {{- include "rillbase.sparkSecretVolume" $root | nindent 8 }}
{{- end -}}

{{/* The secret with which a driver and its executors authenticate each other. */}}
{{- define "rillbase.sparkSecretFolder" -}}
/etc/rillbase/spark-secret
{{- end -}}

{{- define "rillbase.sparkSecretMount" -}}
- { name: spark-secret, mountPath: {{ include "rillbase.sparkSecretFolder" . }}, readOnly: true }
{{- end -}}

{{- define "rillbase.sparkSecretVolume" -}}
- name: spark-secret
  secret:
    secretName: {{ include "rillbase.secret" . }}
    defaultMode: 0440
    items: [{ key: spark-secret, path: spark-secret }]
{{- end -}}

{{/* How a driver reaches Kubernetes; other settings of executors are in Spark's configuration file. */}}
{{- define "rillbase.sparkVariables" -}}
- name: SPARK_CONF_DIR
  value: /etc/rillbase/spark
- name: SPARK_LOCAL_IP
  valueFrom: { fieldRef: { fieldPath: status.podIP } }
- name: POD_NAME
  valueFrom: { fieldRef: { fieldPath: metadata.name } }
{{- end -}}
