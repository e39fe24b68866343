"""``--spark-master`` with a cluster: Spark's own standalone master and worker give the verdict that ``local`` gives."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from cluster.process.java import find_java
from tests.verifier.test_main import ROOT, faulty_story, start

pytestmark = [pytest.mark.full, pytest.mark.integration, pytest.mark.timeout(600)]

_ADDRESS = re.compile(r"Starting Spark master at (spark://[\w.:-]+)")
_REGISTERED = re.compile(r"Successfully registered with master")


@contextmanager
def daemon(home: Path, name: str, said: re.Pattern[str], *arguments: str) -> Iterator[re.Match[str]]:
    """One process of Spark's cluster, until it says so; ended, and waited for, at the end."""
    spec = find_spec("pyspark")
    assert spec is not None and spec.submodule_search_locations
    command = [f"{spec.submodule_search_locations[0]}/bin/spark-class", f"org.apache.spark.deploy.{name}", *arguments]
    environment = {
        **os.environ,
        "JAVA_HOME": find_java().home,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "PYTHONPATH": str(ROOT),
        "SPARK_WORKER_DIR": str(home),
        "SPARK_LOCAL_DIRS": str(home),
        "TMPDIR": str(home),
    }
    log = home / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + 120
        while not (found := said.search(log.read_text(errors="replace"))):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text(errors="replace")
            time.sleep(0.1)
        yield found
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(30)


def test_a_cluster_gives_the_same_verdict(tmp_path: Path) -> None:
    """Spark's workers read the files, whatever was planted is found, and the whole verdict is the same."""
    local, remote = (faulty_story().write(tmp_path / name) for name in ("local", "remote"))
    home = tmp_path / "spark"
    home.mkdir()
    where = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    with daemon(home, "master.Master", _ADDRESS, *where) as master:
        with daemon(home, "worker.Worker", _REGISTERED, *where, "-c", "2", "-m", "1g", master[1]):
            argv = [sys.executable, "-m", "verifier.main", str(remote.path), "--spark-master", master[1]]
            environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
            job = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert job.returncode == 0, job.stderr
    assert f"runs on {master[1]}" in job.stderr
    alone = start(local.path)
    _, log = alone.communicate(timeout=500)
    assert alone.returncode == 0, log
    verdicts = [json.loads(each.verdict_json.read_text()) for each in (local, remote)]
    assert verdicts[0] == verdicts[1]
    assert verdicts[0]["verdict"] == "invalid"
