"""Writes the two locks with uv: ``.venv/bin/python scripts/lock.py [PACKAGE ...]``. ``pip install uv`` brings uv.

Owns the locks' form: exact versions with the hashes of their files, for every platform and Python that the project
supports, and no addresses. ``requirements.lock`` holds the closure of the project's dependencies,
``requirements-dev.lock`` what its ``dev`` extra adds. Versions that are pinned stay as they are where pyproject.toml
allows them; each PACKAGE named is upgraded. Run the whole suite before you commit a changed lock.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUNTIME = "# What gapless needs to run. Made by scripts/lock.py from pyproject.toml; do not edit.\n"
DEV = "# What its tests, linters and build need besides. Made by scripts/lock.py from pyproject.toml; do not edit.\n"
OPTIONS = "--universal --python-version=3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --quiet"
#: A pin with its marker, and the lines of its hashes.
PIN = re.compile(r"^(?P<name>[a-z0-9][a-z0-9.-]*)==.*\n(?: .*\n)*", re.MULTILINE)


def pins(lock: str) -> dict[str, str]:
    """Name -> the pin's lines."""
    return {match["name"]: match[0] for match in PIN.finditer(lock)}


def compiled(uv: str, pinned: str, upgraded: list[str], *options: str) -> dict[str, str]:
    """What uv resolves, preferring the versions in ``pinned``."""
    with tempfile.TemporaryDirectory() as directory:
        lock = Path(directory) / "lock"
        lock.write_text(pinned, encoding="utf-8")
        upgrades = [f"--upgrade-package={name}" for name in upgraded]
        command = [uv, "pip", "compile", "pyproject.toml", f"--output-file={lock}", *OPTIONS.split(), *options]
        subprocess.run([*command, *upgrades], cwd=ROOT, check=True)
        return pins(lock.read_text(encoding="utf-8"))


def main(upgraded: list[str]) -> int:
    uv = shutil.which("uv")
    if uv is None:
        sys.stderr.write("scripts/lock.py: uv is missing; pip install uv\n")
        return 1
    runtime_lock, dev_lock = ROOT / "requirements.lock", ROOT / "requirements-dev.lock"
    pinned = runtime_lock.read_text(encoding="utf-8") + dev_lock.read_text(encoding="utf-8")
    development = compiled(uv, pinned, upgraded, "--extra=dev")
    # the runtime's versions are those that the tests ran with
    runtime = compiled(uv, "".join(development.values()), [])
    extra = {name: pin for name, pin in development.items() if name not in runtime}
    runtime_lock.write_text(RUNTIME + "".join(runtime.values()), encoding="utf-8")
    dev_lock.write_text(DEV + "".join(extra.values()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
