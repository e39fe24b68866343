"""The settings of a Spark session, which depend on the size of the evidence and on where Spark runs.

Owns the settings; does not start sessions (``verifier.spark.session``). For little evidence, they reduce the cost of
planning and of tasks. For much evidence, Spark compiles its queries, adapts their plans as they run, and has enough
tasks for all cores.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

#: Below this much evidence, the JVM's optimizing compiler (C2) costs more than it saves.
SMALL_BYTES = 256 << 20

#: Below this much, compiling queries, adapting their plans and moving rows between tasks cost more than the rows do.
TINY_BYTES = 64 << 20
#: The setting that marks a session for tiny evidence.
TINY = "spark.gapless.tiny"
_FOR_LITTLE = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    # optimizations that skip rows or columns of large files; for small files, planning them takes longer than reading
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    "spark.sql.optimizer.nestedSchemaPruning.enabled": "false",
    "spark.sql.optimizer.expression.nestedPruning.enabled": "false",
    "spark.sql.parquet.filterPushdown": "false",
    # otherwise each sort and each aggregation of a task clears 16 MB, and each plan that is sent to tasks takes 4 MB
    "spark.buffer.pageSize": "1m",
    "spark.broadcast.blockSize": "256k",
    TINY: "true",
}

_LOG4J = """\
status = off
appender.file.type = File
appender.file.name = file
appender.file.fileName = {path}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c{{1}}: %m%n%ex
rootLogger.level = error
rootLogger.appenderRef.file.ref = file
"""


def is_local(master: str) -> bool:
    """Whether Spark runs on this machine, so that it can read the same files."""
    return master.startswith("local")


def is_tiny(spark: Any) -> bool:
    """Whether this session was started for tiny evidence."""
    return bool(spark.sparkContext.getConf().contains(TINY))


def settings_for(scratch: Path, master: str, evidence_bytes: int, java_options: list[str]) -> dict[str, str]:
    """All settings of a session. Writes the configuration of log4j into ``scratch``. Raises ``OSError``.

    A cluster (any master that is not local) keeps its own network settings.
    """
    small = evidence_bytes <= SMALL_BYTES
    log4j = scratch / "log4j2.properties"
    log4j.write_text(_LOG4J.format(path=scratch / "spark.log"), encoding="utf-8")
    options = [
        f"-Dlog4j2.configurationFile={log4j.as_uri()}",
        "-Dlog4j2.disable.jmx=true",
        f"-Djava.io.tmpdir={scratch}",
        "-XX:-UsePerfData",
        "-XX:+UseSerialGC",
        # otherwise the JVM may continue more and more slowly, or without one of its threads
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:ReservedCodeCacheSize=240m",  # with one compiler it is 48 MB, and Spark's threads die when it is full
        "-Xss16m",  # a query with many branches is a deep tree, which Spark traverses recursively
        *java_options,
    ]
    if small:
        # with the whole heap from the start, there are half as many collections, and none for class metadata
        options += ["-XX:TieredStopAtLevel=1", "-Xms1g", "-XX:MetaspaceSize=256m"]
    local = is_local(master)
    settings = {
        "spark.master": master,
        "spark.app.name": "gapless verifier",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g" if small else f"{_large_heap_gb()}g",
        "spark.driver.extraJavaOptions": " ".join(f'"{option}"' for option in options),
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        "spark.sql.shuffle.partitions": str(2 if small else 16) if local else "64",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
        # otherwise pyspark walks the stack at every expression, for messages that no one reads: seconds per verdict
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.autoBroadcastJoinThreshold": str(16 << 20),
    }
    if evidence_bytes <= TINY_BYTES:
        settings |= _FOR_LITTLE
    if local:
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return settings


def _large_heap_gb() -> int:
    """The heap for much evidence, in GB: half of the machine's memory, at most 6, because sorts can spill to disk."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(6, total // 2 >> 30))
