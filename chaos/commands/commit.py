"""Asks git for the commit of the running sources. It is not an error if there is no checkout, or no git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2]
PATIENCE_S = 10.0


def commit(sources: Path = SOURCES) -> str | None:
    """The abbreviated commit, with ``-dirty`` if tracked files were changed; None if it is unknown."""
    if not (sources / ".git").exists():
        return None
    # --exclude=* keeps git from describing the commit by a tag
    asked = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        told = subprocess.run(
            asked, cwd=sources, capture_output=True, text=True, timeout=PATIENCE_S, check=True,
            stdin=subprocess.DEVNULL, env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return told.stdout.strip() or None
