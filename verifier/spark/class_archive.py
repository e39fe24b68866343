"""Java's archive of Spark's classes (class data sharing), which every JVM of the verifier maps to start faster.

Owns the file: where it is, and how it gets there. Does not own the JVM (``verifier.spark.session``). Reading, verifying
and linking many thousand classes is half of the cost of starting Spark. The JVM itself writes an archive of them when
the first verifier ends, after its verdict. The archive is optional. If it is missing, or does not fit the Java or the
jars (the JVM checks that), Spark starts more slowly, and everything else works the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path

logger = logging.getLogger(__name__)

#: How long a JVM may take to write the archive. It takes about 10 s on an idle machine. After this time, the JVM is
#: killed, and no archive is made.
DUMP_TIMEOUT_S = 90.0
#: The free space that must be there to make an archive, which takes 150 to 250 MB.
ROOM_BYTES = 2 << 30

_QUIET = "-Xlog:disable"


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The archive for one Java and one Spark. ``path`` need not exist; it is None if no directory can hold it."""

    path: Path | None

    @classmethod
    def of(cls, java_home: str, jars: Path) -> ClassArchive:
        """The archive for this Java and the jars of this directory."""
        java = Path(java_home).resolve()
        seen = [str(java), _stamp(java / "lib" / "modules"), _stamp(java / "bin" / "java"), str(jars.resolve())]
        name = f"spark-classes-{hashlib.sha256(os.pathsep.join(seen).encode()).hexdigest()[:16]}.jsa"
        for base in _directories():
            if (base / name).is_file():
                return cls(base / name)
        for base in _directories():
            with contextlib.suppress(OSError):
                base.mkdir(mode=0o700, parents=True, exist_ok=True)
                room = os.statvfs(base)
                if os.access(base, os.W_OK) and room.f_bavail * room.f_frsize >= ROOM_BYTES:
                    return cls(base / name)
        return cls(None)

    def use(self) -> list[str]:
        """The options of a JVM that maps the archive; empty if it does not exist yet."""
        return [_QUIET, f"-XX:SharedArchiveFile={self.path}"] if self.path is not None and self.path.is_file() else []

    def make(self) -> Making | None:
        """Prepares the next JVM to write the archive; None if it exists already, or has no place."""
        if self.path is None or self.path.is_file():
            return None
        for left in self.path.parent.glob(f"{self.path.name}.*"):
            if not Path(f"/proc/{left.suffix[1:]}").exists():
                left.unlink(missing_ok=True)
        return Making(self.path, self.path.with_name(f"{self.path.name}.{os.getpid()}"))


@dataclass(frozen=True, slots=True)
class Making:
    """An archive that a running JVM will write to ``fresh`` when it exits normally."""

    path: Path
    fresh: Path

    def options(self) -> list[str]:
        """The options of the JVM that writes the archive."""
        return [_QUIET, f"-XX:ArchiveClassesAtExit={self.fresh}"]

    def finish(self, *, whole: bool) -> None:
        """Moves the archive to ``path`` if it is ``whole``, or else removes it. Call this after the JVM has exited."""
        with contextlib.suppress(OSError):
            if whole and self.fresh.is_file():
                self.fresh.replace(self.path)
                logger.info("Spark's classes are kept in %s: the next verifier starts faster", self.path)
        with contextlib.suppress(OSError):
            self.fresh.unlink(missing_ok=True)


def _stamp(path: Path) -> str:
    """Size and modification time of a file as text, to recognize another Java; empty if it cannot be read."""
    try:
        found = path.stat()
    except OSError:
        return ""
    return f"{found.st_size}/{found.st_mtime_ns}"


def _directories() -> list[Path]:
    """Candidate directories: in the Python environment, then in the user's cache. None belongs to another user."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    found = [Path(sys.prefix) / "share" / "gapless", Path(cache) / "gapless"]
    return [each for each in found if not each.exists() or each.stat().st_uid in (0, os.getuid())]
