"""The process that Spark forks its Python workers from, with everything they need imported once.

Spark's own daemon imports nothing, so that every new worker spends half a second on numpy and pyarrow: after a minute
of idleness (the chaos phase) all workers are new. Here they start in milliseconds and share the memory.
"""

import pyspark.daemon
import pyspark.worker

from fencepost.checkers import kernel

PRELOADED = (kernel, pyspark.worker)

if __name__ == "__main__":
    pyspark.daemon.manager()
