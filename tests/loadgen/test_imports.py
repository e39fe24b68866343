"""What the conductor imports of the load brings in neither gevent nor Locust, nor pyspark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from cluster.process.safe_path import package_environment
from loadgen.users.command_line import FIELDS

ROOT = Path(__file__).resolve().parents[2]


def test_only_users_and_the_locustfile_load_locust() -> None:
    """Every other module of the room, the final tools included, imports without patching anything."""
    code = (
        "import importlib, pkgutil, sys, loadgen\n"
        "names = [m.name for m in pkgutil.walk_packages(loadgen.__path__, 'loadgen.')]\n"
        "wanted = [n for n in names if not n.startswith('loadgen.users.') and n != 'loadgen.locustfile']\n"
        "assert 'loadgen.sentinel' in wanted and 'loadgen.stream' in wanted\n"
        "for name in wanted: importlib.import_module(name)\n"
        "bad = {'gevent', 'locust', 'pyspark'} & set(sys.modules)\n"
        "assert not bad, bad\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_load_stands_among_whatever_packages(tmp_path: Path) -> None:
    """Locust looks in the working directory first; a project of the user's has packages of these names too."""
    for name in ("loadgen", "cluster", "verifier"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('imported from the working directory')\n")
    done = _load(tmp_path, "--host", "127.0.0.1:1", "--kafka-rate", "0")
    assert (done.returncode, "RuntimeError" in done.stderr) == (254, False), done.stderr
    assert "--kafka-rate 0: rate is 0.0" in done.stderr


def test_all_options_of_a_load_are_printed(tmp_path: Path) -> None:
    """Locust's and ours: its own help is made before our file is loaded, and showed ours never."""
    done = _load(tmp_path, "--options")
    assert done.returncode == 0, done.stderr
    assert all(option in done.stdout for option in ("--run-time", "--kafka-read-back yes|no", *FIELDS))
    assert "https://www.example.com" not in done.stdout.partition("Examples:")[0]


def _load(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "chaos.commands.main", "load", *arguments]
    environment = {**os.environ, **package_environment(ROOT)}
    return subprocess.run(argv, cwd=place, capture_output=True, text=True, timeout=60, env=environment)
