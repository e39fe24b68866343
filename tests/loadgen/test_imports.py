"""A load among other packages, and its own help. (What the rest of the room loads: ``tests/architecture``.)"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from cluster.process.safe_path import package_environment
from loadgen.users.command_line import FIELDS

ROOT = Path(__file__).resolve().parents[2]


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
