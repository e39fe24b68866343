"""What a session of Spark is told: by the size of the evidence, and by where Spark runs. Starts none.

Little evidence is judged by a Spark that spends little on planning and on tasks; much, by one that compiles its
queries, plans them again as they run, and has enough tasks for all cores.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

#: Below this much evidence the JVM's second compiler costs more than it gives.
SMALL_BYTES = 256 << 20

#: Below this much the JVM spends more on compiling queries, on planning them again as they run, and on handing rows
#: from task to task than on the rows.
TINY_BYTES = 64 << 20
#: A session for so little has this setting.
TINY = "spark.gapless.tiny"
_FOR_LITTLE = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    # what would spare a query rows or columns of large files, and takes longer to plan than they to read
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.optimizer.dynamicPartitionPruning.enabled": "false",
    "spark.sql.optimizer.nestedSchemaPruning.enabled": "false",
    "spark.sql.optimizer.expression.nestedPruning.enabled": "false",
    "spark.sql.parquet.filterPushdown": "false",
    # else each sort and each sum of a task takes and clears 16 MB, and each plan that is sent to tasks 4 MB
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
    """Whether this Spark runs in the JVM on this machine, and so sees its files."""
    return master.startswith("local")


def is_tiny(spark: Any) -> bool:
    """Whether this session was started for little evidence."""
    return bool(spark.sparkContext.getConf().contains(TINY))


def settings_for(scratch: Path, master: str, evidence_bytes: int, java_options: list[str]) -> dict[str, str]:
    """All settings of a session. A cluster (any master that is not local) keeps its own network settings."""
    small = evidence_bytes <= SMALL_BYTES
    log4j = scratch / "log4j2.properties"
    log4j.write_text(_LOG4J.format(path=scratch / "spark.log"), encoding="utf-8")
    options = [
        f"-Dlog4j2.configurationFile={log4j.as_uri()}",
        "-Dlog4j2.disable.jmx=true",
        f"-Djava.io.tmpdir={scratch}",
        "-XX:-UsePerfData",
        "-XX:+UseSerialGC",
        # else it may continue, slower and slower, or without one of its threads
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:ReservedCodeCacheSize=240m",  # 48 MB with one compiler; where they are full, threads of Spark die
        "-Xss16m",  # a query of many branches is a deep tree, through which Spark goes by recursion
        *java_options,
    ]
    if small:
        # all of the heap at once: it is collected half as often, and never to make room for classes
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
        # else pyspark walks the stack at every expression, for messages that no one reads: some seconds a verdict
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.autoBroadcastJoinThreshold": str(16 << 20),
    }
    if evidence_bytes <= TINY_BYTES:
        settings |= _FOR_LITTLE
    if local:
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return settings


def _large_heap_gb() -> int:
    """Half of the machine's memory, at most six gigabytes: what is sorted can spill."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(6, total // 2 >> 30))
