"""A Spark application, as drivers of Rillbase start it.

`python -m tests.foundation.spark_application` prints where its endpoints listen, keeps a Python
worker busy, and runs until its input ends. It is killed then, or closed with the argument `close`.
"""

from __future__ import annotations

import json
import sys
import threading
import time

from foundation.spark import SparkApplication


def main() -> None:
    application = SparkApplication("tested", "local[2]")
    end = application.close if "close" in sys.argv else application.kill
    context = application.context
    application.context.setLogLevel("OFF")
    busy = threading.Thread(
        target=lambda: context.parallelize([600], 1).foreach(time.sleep), daemon=True
    )
    busy.start()
    while not context.statusTracker().getActiveStageIds():
        time.sleep(0.01)
    blocks = context._jsc.env().blockManager().blockTransferService().port()
    ports = {"driver": int(context.getConf().get("spark.driver.port") or 0), "blocks": blocks}
    sys.stdout.write(json.dumps(ports) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    end()


if __name__ == "__main__":
    main()
