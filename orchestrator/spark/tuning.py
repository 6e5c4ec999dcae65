"""Settings of Spark for little, much and very much input."""

from collections.abc import Mapping

# With less input than this, optimising compilation takes longer than it saves.
BULK_BYTES = 64 * 2**20
# … and with less than this, compilers that take their time.
HUGE_BYTES = 2 * 2**30

# Spark makes one method of a whole stage, which Java would not compile if it is long.
_JAVA = "-XX:-UsePerfData -XX:-DontCompileHugeMethods"
_QUICK_JAVA = f"{_JAVA} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

QUICK = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": _QUICK_JAVA,
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
BULK = {
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": _QUICK_JAVA,
    "spark.sql.shuffle.partitions": "2",
    # Planning the rest of a query anew after each of its stages takes longer than it saves.
    "spark.sql.adaptive.enabled": "false",
    # Rows of a run are in one partition: that is enough to group or join them by more than the run.
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
}
HUGE = {
    **BULK,
    "spark.driver.extraJavaOptions": f"{_JAVA} -XX:+UseParallelGC",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.adaptive.enabled": "true",
}


def tuning_for(input_bytes: int) -> Mapping[str, str]:
    """Returns the settings for about this much input."""
    if input_bytes < BULK_BYTES:
        return QUICK
    return BULK if input_bytes < HUGE_BYTES else HUGE
