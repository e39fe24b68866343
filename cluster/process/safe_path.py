"""The safe path: no Python that we start looks for modules in the directory it happens to run in.

Owns the variable that says so to an interpreter and to all that descend from it. Python itself puts the current
directory before its own library (``python -m``, ``python -c``), and anyone who judges a run that others sent is in a
directory that others filled: a ``json.py`` there would be executed. And how we see that a package is not our own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

#: For the environment of a child. An explicit PYTHONPATH still counts.
SAFE_PATH = {"PYTHONSAFEPATH": "1"}


def keep_safe() -> None:
    """Give the safe path to whatever this process starts from now on."""
    os.environ.update(SAFE_PATH)


def package_environment(root: Path) -> dict[str, str]:
    """What is added to the environment of a Python child so that it imports this very package, which lies in ``root``,
    however we found it and wherever the child runs."""
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH", "")]))
    return {"PYTHONPATH": path, **SAFE_PATH}


def foreign(packages: Sequence[str]) -> str | None:
    """The first of our packages that is another project's here, with its file; None if all are ours.

    Their names are common ones: in an environment that is shared, who is installed last overwrites the other. Ours
    begin their docstring with their name.
    """
    for name in packages:
        package = import_module(name)
        if not (package.__doc__ or "").startswith(f"{name}: "):
            return f"{name} ({package.__file__})"
    return None


@contextmanager
def safe_path() -> Iterator[None]:
    """Give it to what is started meanwhile, where an environment of its own cannot be given."""
    before = {name: os.environ.get(name) for name in SAFE_PATH}
    os.environ.update(SAFE_PATH)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
