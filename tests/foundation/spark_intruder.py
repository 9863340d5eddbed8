"""An attacker with an account on this machine and Spark's own classes, without the secret or with a
wrong one.

`python -m tests.foundation.spark_intruder PORT [SECRET]` looks for the endpoint of the driver that
can stop its executor, and prints `reached` or `refused`.
"""

from __future__ import annotations

import sys
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway


def main(port: int, secret: str = "") -> None:
    jvm = launch_gateway(SparkConf(loadDefaults=False)).jvm  # type: ignore[no-untyped-call]
    conf = jvm.org.apache.spark.SparkConf(False)
    if secret:
        conf.set("spark.authenticate", "true").set("spark.authenticate.secret", secret)
        conf.set("spark.network.crypto.enabled", "true")
    constants = _singleton(jvm, "org.apache.spark.internal.config.package$")
    nothing = _singleton(jvm, "scala.None$")
    security = jvm.org.apache.spark.SecurityManager(conf, nothing, constants.AUTH_SECRET_FILE())
    create = jvm.org.apache.spark.rpc.RpcEnv.create
    network = create("intruder", "127.0.0.1", 0, conf, security, True)
    address = jvm.org.apache.spark.rpc.RpcAddress("127.0.0.1", port)
    try:
        network.setupEndpointRef(address, "LocalSchedulerBackendEndpoint")
    except Py4JJavaError:
        sys.stdout.write("refused\n")
    else:
        sys.stdout.write("reached\n")


def _singleton(jvm: Any, name: str) -> Any:
    return jvm.java.lang.Class.forName(name).getField("MODULE$").get(None)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
