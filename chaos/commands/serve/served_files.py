"""Serves files below a results directory to a browser. Owns which paths may be served, and with which type.

A report may come from anyone (docs/security.md): it is shown without scripts, and cannot send requests to this server.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

#: The largest file that is served. Users read larger files from disk.
MOST_BYTES = 64 * 1024 * 1024
#: Forbids scripts, forms and everything else except the page's own styles and pictures, which a report needs.
SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"

_PLAIN = "text/plain; charset=utf-8"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    **dict.fromkeys((".csv", ".edn", ".json", ".jsonl", ".log", ".md", ".properties", ".txt", ".xml", ".yaml"), _PLAIN),
}
_BYTES = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class ServedFile:
    """A file as it is sent. ``is_shown``: the browser shows it instead of saving it."""

    content: bytes
    content_type: str
    is_shown: bool


def inside(base: Path, place: str) -> Path | None:
    """The path of ``place``, which must be below ``base`` and be there; None for anything else.

    A link counts as what it leads to: ``latest`` is below, and a link that leads out is not.
    """
    parts = PurePosixPath(place).parts
    if not place or "\0" in place or "\\" in place or place.startswith("/") or ".." in parts:
        return None
    try:
        root = base.resolve(strict=True)
        path = (root / place).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return None
    return path if path != root and path.is_relative_to(root) else None


def file_at(path: Path) -> ServedFile | None:
    """The content of a regular file; None for anything else, or if it is too large. Raises ``OSError``."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
        return None
    with path.open("rb") as file:
        content = file.read(MOST_BYTES)
    kind = _TYPES.get(path.suffix.lower(), _BYTES)
    return ServedFile(content, kind, kind != _BYTES)
