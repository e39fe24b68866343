"""A directory that somebody else filled: a module of every name that gapless could import, and settings for its tools.

Owns what is planted there, and what was executed of it. Whoever stands in such a directory and runs a command must not
run what lies in it.
"""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

_MODULE = """import os, sys
descriptor = os.open({trace!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(descriptor, (__name__ + " by " + " ".join(sys.orig_argv)[:300] + "\\n").encode())
os.close(descriptor)
raise ImportError("planted")
"""
#: Modules that Python imports by itself, if there are any.
_UNASKED = {"sitecustomize", "usercustomize"}
_OURS = {"cluster", "loadgen", "chaos", "verifier"}
#: Locust looks for these; a load that ends after a second is noticed.
_SETTINGS = {"locust.conf": "run-time = 1s\n", "pyproject.toml": '[tool.locust]\nrun-time = "1s"\n'}


def plant(directory: Path) -> Path:
    """Fill this directory. Returns the file that tells what of it was executed."""
    trace = directory / "executed"
    text = _MODULE.format(trace=str(trace))
    for name in {*sys.stdlib_module_names, *metadata.packages_distributions(), *_UNASKED, *_OURS}:
        if name.isidentifier():
            (directory / f"{name}.py").write_text(text)
    for name in _OURS:
        (directory / name).mkdir(exist_ok=True)
        (directory / name / "__init__.py").write_text(text)
    for name, settings in _SETTINGS.items():
        (directory / name).write_text(settings)
    return trace


def assert_nothing_executed(directory: Path) -> None:
    """Fails with the modules that were imported from there, and by whom."""
    trace = directory / "executed"
    assert not trace.exists(), trace.read_text()
