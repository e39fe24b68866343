"""One Spark session, started and ended here. Owns Java, settings, environment and the life of the JVM.

pyspark is imported when a session is asked for, not before. Nothing is printed: what the JVM says goes to
``spark.log`` in the scratch directory. The JVM ends when the session is closed, and also when this process is killed
(its standard input closes); the session's ``jvm_pid`` is there for whoever records processes.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)

#: Below this much evidence the JVM's second compiler costs more than it gives (feasibility part 2, section 2).
SMALL_BYTES = 256 << 20

#: Below this much the JVM spends more on compiling queries and on planning them anew as they run than on the rows.
TINY_BYTES = 64 << 20
_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
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


class SparkUnavailable(Exception):
    """No session could be started; the message is one line and says why."""


class Session:
    """A running session. ``spark`` is the ``SparkSession``; ``jvm_pid`` the Java process."""

    def __init__(self, spark: Any, gateway: Any, master: str) -> None:
        self.spark = spark
        self.master = master
        self._gateway = gateway
        self.jvm_pid: int = gateway.proc.pid

    def close(self) -> None:
        """Stop Spark and end the JVM, and wait until it is gone."""
        with contextlib.suppress(Exception):
            self.spark.stop()
        with contextlib.suppress(Exception):
            self._gateway.shutdown()
        process = self._gateway.proc
        process.stdin.close()
        try:
            process.wait(timeout=10)
        except Exception:
            process.kill()
            process.wait(timeout=10)
        _forget_gateway()

    def __repr__(self) -> str:
        return f"Session({self.master}, jvm_pid={self.jvm_pid})"


@contextlib.contextmanager
def session(scratch: Path, master: str = "local[2]", evidence_bytes: int = 0) -> Iterator[Session]:
    """A session whose files live in ``scratch`` (made if absent, not removed).

    Raises ``SparkUnavailable`` if Java or Spark do not start.
    """
    started = start(scratch, master, evidence_bytes)
    try:
        yield started
    finally:
        started.close()


def start(scratch: Path, master: str = "local[2]", evidence_bytes: int = 0) -> Session:
    """Start a session, to be ended by ``Session.close``. Raises ``SparkUnavailable``."""
    scratch = scratch.resolve()
    scratch.mkdir(parents=True, exist_ok=True)
    settings = _settings(scratch, master, evidence_bytes)
    with _environment(scratch, master):
        gateway = None
        try:
            with warnings.catch_warnings():
                # pyspark 4.3 imports this sooner or later, and it warns of pandas 3, which the verifier does not use
                warnings.simplefilter("ignore", FutureWarning)
                importlib.import_module("pyspark.testing.utils")
                from pyspark import SparkConf, SparkContext
                from pyspark.java_gateway import launch_gateway
                from pyspark.sql import SparkSession

            configuration = SparkConf(loadDefaults=False).setAll(list(settings.items()))
            with (scratch / "jvm.log").open("ab") as output:
                gateway = launch_gateway(configuration, {"stdout": output, "stderr": output})
            context = SparkContext(conf=SparkConf(_jvm=gateway.jvm).setAll(list(settings.items())), gateway=gateway)
            spark = SparkSession(context)
        except Exception as error:
            if gateway is not None and gateway.proc is not None:
                gateway.proc.kill()
                gateway.proc.wait(timeout=10)
            _forget_gateway()
            reason = str(error).strip().splitlines()
            raise SparkUnavailable(f"Spark did not start: {reason[0] if reason else error!r}") from error
    started = Session(spark, gateway, master)
    logger.info("Spark %s runs on %s, JVM %d", spark.version, master, started.jvm_pid)
    return started


def is_local(master: str) -> bool:
    """Whether this Spark runs in the JVM on this machine, and so sees its files."""
    return master.startswith("local")


def _settings(scratch: Path, master: str, evidence_bytes: int) -> dict[str, str]:
    """Feasibility part 2, section 2. A cluster (any master that is not local) keeps its own network settings."""
    small = evidence_bytes <= SMALL_BYTES
    log4j = scratch / "log4j2.properties"
    log4j.write_text(_LOG4J.format(path=scratch / "spark.log"), encoding="utf-8")
    options = [
        f"-Dlog4j2.configurationFile={log4j.as_uri()}",
        "-Dlog4j2.disable.jmx=true",
        f"-Djava.io.tmpdir={scratch}",
        "-XX:-UsePerfData",
        "-XX:+UseSerialGC",
    ]
    if small:
        options.append("-XX:TieredStopAtLevel=1")
    local = is_local(master)
    settings = {
        "spark.master": master,
        "spark.app.name": "gapless verifier",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g" if small else f"{_large_heap_gb()}g",
        "spark.driver.extraJavaOptions": " ".join(options),
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        "spark.sql.shuffle.partitions": str(2 if small else 16) if local else "64",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
        "spark.sql.autoBroadcastJoinThreshold": str(16 << 20),
    }
    if evidence_bytes <= TINY_BYTES:
        settings |= _INTERPRETED
    if local:
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return settings


def _large_heap_gb() -> int:
    """Half of the machine's memory, at most four gigabytes: an hour's run takes two, and what is sorted can spill."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(4, total // 2 >> 30))


@contextlib.contextmanager
def _environment(scratch: Path, master: str) -> Iterator[None]:
    """What the JVM and its Python workers inherit; this process's own environment is as before afterwards."""
    before = dict(os.environ)
    temporary = tempfile.tempdir
    root = str(Path(__file__).resolve().parent.parent)
    try:
        os.environ |= {
            "JAVA_HOME": _java_home(),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            # the workers import this very package, however it was found
            "PYTHONPATH": os.pathsep.join(filter(None, [root, before.get("PYTHONPATH", "")])),
            "TMPDIR": str(scratch),
        }
        if is_local(master):
            os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
            for name in ("SPARK_HOME", "SPARK_CONF_DIR", "HADOOP_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "SPARK_REMOTE"):
                os.environ.pop(name, None)
        tempfile.tempdir = str(scratch)
        yield
    finally:
        tempfile.tempdir = temporary
        os.environ.clear()
        os.environ.update(before)


def _java_home() -> str:
    from cluster.process.java import JavaNotFound, find_java

    try:
        return find_java().home
    except JavaNotFound as error:
        raise SparkUnavailable(str(error)) from error


def _forget_gateway() -> None:
    """pyspark keeps the gateway of a dead JVM for the next session; it must not."""
    with contextlib.suppress(ImportError):
        from pyspark import SparkContext

        SparkContext._gateway = None
        SparkContext._jvm = None
