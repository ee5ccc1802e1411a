"""The process from which Spark forks its Python workers, with all modules that they need already imported.

Spark's own daemon imports nothing, so every new worker spends half a second on numpy and pyarrow. After a minute of
idleness (the chaos phase) all workers are new. Workers of this daemon start in milliseconds and share its memory.
"""

import pyspark.daemon
import pyspark.worker

from fencepost.checkers import kernel

PRELOADED = (kernel, pyspark.worker)

if __name__ == "__main__":
    pyspark.daemon.manager()
