#!/bin/sh
# Spark starts its executors' pods with the argument `executor` and passes all settings in the
# environment. Any other command is executed unchanged.
set -eu
# Files of executors and their Python workers are readable only by their account.
umask 077
if [ "${1:-}" != executor ]; then
  exec "$@"
fi

# Java options are SPARK_JAVA_OPT_0, _1, …; each is one argument, whatever it contains.
set --
number=0
while name="SPARK_JAVA_OPT_$number" && [ -n "$(printenv "$name")" ]; do
  set -- "$@" "$(printenv "$name")"
  number=$((number + 1))
done

# An executor reads the secret's file only if it knows that it runs on Kubernetes, which Spark tells
# it after it has authenticated.
exec "$JAVA_HOME/bin/java" "$@" \
  -Xms"$SPARK_EXECUTOR_MEMORY" -Xmx"$SPARK_EXECUTOR_MEMORY" \
  -Dspark.master=k8s://executor \
  -cp "${SPARK_CONF_DIR:-/nonexistent}:$SPARK_HOME/jars/*" \
  org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
  --driver-url "$SPARK_DRIVER_URL" \
  --executor-id "$SPARK_EXECUTOR_ID" \
  --cores "$SPARK_EXECUTOR_CORES" \
  --app-id "$SPARK_APPLICATION_ID" \
  --hostname "$SPARK_EXECUTOR_POD_IP" \
  --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
  --podName "$SPARK_EXECUTOR_POD_NAME"
