"""Writes the two locks from what is installed: ``.venv/bin/python scripts/lock.py``.

Owns the locks' form: plain pins, no addresses, no hashes. ``requirements.lock`` holds the closure of the project's
dependencies, ``requirements-dev.lock`` what its ``dev`` extra adds. Which versions those are is decided by anyone who
installed them; run the whole suite before committing a changed lock.
"""

from __future__ import annotations

import tomllib
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
RUNTIME = "# What gapless needs to run. Made by scripts/lock.py from pyproject.toml; do not edit.\n"
DEV = "# What its tests, linters and build need besides. Made by scripts/lock.py from pyproject.toml; do not edit.\n"


def closure(requirements: list[str]) -> dict[str, str]:
    """Name -> version of the requirements and all that they need, on this platform."""
    found: dict[str, str] = {}
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        requirement = waiting.pop()
        package = distribution(requirement.name)
        name = canonicalize_name(package.metadata["Name"])
        if name not in found:
            found[name] = package.version
        for text in package.requires or []:
            child = Requirement(text)
            extras = ["", *requirement.extras]
            applies = child.marker is None or any(child.marker.evaluate({"extra": extra}) for extra in extras)
            if applies and canonicalize_name(child.name) not in found:
                waiting.append(child)
    return found


def pins(packages: dict[str, str]) -> str:
    return "".join(f"{name}=={version}\n" for name, version in sorted(packages.items()))


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    runtime = closure(project["dependencies"])
    development = closure(project["optional-dependencies"]["dev"])
    (ROOT / "requirements.lock").write_text(RUNTIME + pins(runtime))
    extra = {name: version for name, version in development.items() if name not in runtime}
    (ROOT / "requirements-dev.lock").write_text(DEV + pins(extra))


if __name__ == "__main__":
    main()
