#!/bin/bash
# The role of a pod of this image: `driver ...` submits a job from this pod, `executor` joins the driver that created
# it, and any other command is run as given.
set -euo pipefail

case ${1:-} in
  driver)
    shift
    # Client mode: this pod is the driver. In cluster mode Spark passes properties and a class before the job's file.
    exec "$SPARK_HOME/bin/spark-submit" --deploy-mode client \
      --conf "spark.driver.bindAddress=${SPARK_DRIVER_BIND_ADDRESS:?the address of this pod}" "$@"
    ;;
  executor)
    # The driver passes the options of the virtual machine as SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1 and so on.
    options=()
    number=0
    while name=SPARK_JAVA_OPT_$number; [[ -n ${!name+set} ]]; do
      options+=("${!name}")
      number=$((number + 1))
    done
    classpath=${SPARK_CONF_DIR:-$SPARK_HOME/conf}:$SPARK_HOME/jars/*
    exec java ${options[@]+"${options[@]}"} \
      "-Xms${SPARK_EXECUTOR_MEMORY:?}" "-Xmx$SPARK_EXECUTOR_MEMORY" \
      -cp "${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}$classpath" \
      org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
      --driver-url "${SPARK_DRIVER_URL:?}" \
      --executor-id "${SPARK_EXECUTOR_ID:?}" \
      --cores "${SPARK_EXECUTOR_CORES:?}" \
      --app-id "${SPARK_APPLICATION_ID:?}" \
      --hostname "${SPARK_EXECUTOR_POD_IP:?}" \
      --resourceProfileId "${SPARK_RESOURCE_PROFILE_ID:?}" \
      --podName "${SPARK_EXECUTOR_POD_NAME:?}"
    ;;
  *)
    exec "$@"
    ;;
esac
