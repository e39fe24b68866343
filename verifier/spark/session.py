"""Starts and ends one Spark session.

Owns the Java that is used, the environment, and the life of the JVM. Does not own Spark's settings
(``verifier.spark.settings``). pyspark is imported only when a session starts. Nothing is printed: the JVM's messages go
to ``spark.log`` in the scratch directory. The JVM ends when the session is closed, and also when this process is
killed, because its standard input closes.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cluster.process.safe_path import package_environment
from verifier.spark.class_archive import DUMP_TIMEOUT_S, ClassArchive, Making
from verifier.spark.settings import is_local, settings_for

logger = logging.getLogger(__name__)

#: How long a JVM may take to exit before it is killed.
END_TIMEOUT_S = 10.0

#: Exit statuses of a JVM that ran out of memory: 3 by ``-XX:+ExitOnOutOfMemoryError``, 52 by Spark's own handler.
OUT_OF_MEMORY = (3, 52)


class SparkUnavailable(Exception):
    """No session could be started; the message is one line and says why."""


class SparkLost(Exception):
    """The JVM died while it was needed; the message is one line and says how."""


class SparkProcess:
    """A running session. ``spark`` is the ``SparkSession``; ``jvm_pid`` the Java process."""

    def __init__(self, spark: Any, gateway: Any, master: str, heap: str = "", making: Making | None = None) -> None:
        self.spark = spark
        self.heap = heap
        self.master = master
        self._gateway = gateway
        self._making = making
        self.jvm_pid: int = gateway.proc.pid

    def close(self) -> None:
        """Stops Spark and waits until the JVM has exited, and has written its class archive if it was to write one."""
        # py4j raises exceptions of many kinds if the JVM has exited already
        with contextlib.suppress(Exception):
            self.spark.stop()
        with contextlib.suppress(Exception):
            self._gateway.shutdown()
        process = self._gateway.proc
        process.stdin.close()
        try:
            process.wait(timeout=END_TIMEOUT_S if self._making is None else DUMP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.abort()
        else:
            self._gone(whole=process.returncode == 0)

    def check(self) -> None:
        """Raises ``SparkLost`` if the JVM has exited."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            # the connection breaks a moment before the process has exited
            self._gateway.proc.wait(timeout=0.5)
        status = self._gateway.proc.returncode
        if status is None:
            return
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        if status in OUT_OF_MEMORY:
            how = f"ran out of memory (status {status}, heap {self.heap})"
        raise SparkLost(f"Spark's JVM {how}")

    def abort(self) -> None:
        """Kills the JVM and waits until it has exited."""
        _kill(self._gateway.proc)
        self._gone(whole=False)

    def _gone(self, *, whole: bool) -> None:
        if self._making is not None:
            self._making.finish(whole=whole)
        _forget_gateway()

    def __repr__(self) -> str:
        return f"SparkProcess({self.master}, jvm_pid={self.jvm_pid})"


@contextlib.contextmanager
def session(
    scratch: Path, master: str = "local[2]", evidence_bytes: int = 0, *, archive: bool = False
) -> Iterator[SparkProcess]:
    """A session whose files are in ``scratch``, a directory that is created if needed, and never removed.

    ``archive``: the JVM writes the class archive when it ends, if there is none yet; that delays its end. Raises
    ``SparkUnavailable`` if Java or Spark does not start, and ``SparkLost`` if the JVM dies meanwhile.
    """
    started = start(scratch, master, evidence_bytes, archive=archive)
    try:
        yield started
    except BaseException as error:
        if isinstance(error, Exception):
            try:
                started.check()
            except SparkLost as lost:
                started.abort()
                raise lost from error
        started.abort()
        raise
    else:
        started.close()


def start(scratch: Path, master: str = "local[2]", evidence_bytes: int = 0, *, archive: bool = False) -> SparkProcess:
    """Starts a session; end it with ``SparkProcess.close``. Raises ``SparkUnavailable``."""
    scratch = scratch.absolute()
    scratch.mkdir(parents=True, exist_ok=True)
    java_home = _java_home()
    classes = _classes(java_home)
    making = classes.make() if archive else None
    shared = classes.use() if making is None else making.options()
    settings = settings_for(scratch, master, evidence_bytes, shared)
    with _environment(scratch, master, java_home):
        gateway = None
        try:
            with warnings.catch_warnings():
                # pyspark 4.3 imports this sooner or later, and it warns about pandas 3, which the verifier does not use
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
        except Exception as error:  # on any error, no JVM may be left running
            if gateway is not None and gateway.proc is not None:
                _kill(gateway.proc)
            if making is not None:
                making.finish(whole=False)
            _forget_gateway()
            reason = str(error).strip().splitlines()
            raise SparkUnavailable(f"Spark did not start: {reason[0] if reason else error!r}") from error
    started = SparkProcess(spark, gateway, master, settings["spark.driver.memory"], making)
    logger.info("Spark %s runs on %s, JVM %d", spark.version, master, started.jvm_pid)
    return started


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait(timeout=END_TIMEOUT_S)
    with contextlib.suppress(OSError):
        process.stdin.close()  # type: ignore[union-attr]  # py4j opens it always


@contextlib.contextmanager
def _environment(scratch: Path, master: str, java_home: str) -> Iterator[None]:
    """Sets the environment that the JVM and its Python workers inherit, and restores this process's own afterwards."""
    before = dict(os.environ)
    temporary = tempfile.tempdir
    try:
        os.environ |= {
            "JAVA_HOME": java_home,
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            **package_environment(Path(__file__).resolve().parent.parent),
            "TMPDIR": str(scratch),
            # without a locale, Java finds no file whose name is not ASCII
            "LC_ALL": "C.UTF-8",
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


def _classes(java_home: str) -> ClassArchive:
    """The class archive for this Java and pyspark's jars. Raises ``SparkUnavailable`` without pyspark."""
    found = find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise SparkUnavailable("pyspark is not installed: run `make setup`")
    return ClassArchive.of(java_home, Path(found.submodule_search_locations[0]) / "jars")


def _java_home() -> str:
    from cluster.process.java import JavaNotFound, find_java

    try:
        return find_java().home
    except JavaNotFound as error:
        raise SparkUnavailable(str(error)) from error


def _forget_gateway() -> None:
    """Clears pyspark's globals. Otherwise the next session would use the gateway of a dead JVM."""
    with contextlib.suppress(ImportError):
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        SparkContext._gateway = None
        SparkContext._jvm = None
        SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None
