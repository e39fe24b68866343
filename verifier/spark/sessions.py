"""Keeps one Spark session for several runs that are judged one after the other.

Owns when a session is started, and restarted. Does not own the session itself (``verifier.spark.session``), whose
module is imported only when a session is needed.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from verifier.spark.plain_paths import PlainPaths

if TYPE_CHECKING:
    from verifier.spark.session import SparkProcess

logger = logging.getLogger(__name__)


class Sessions:
    """A context manager with one session. It starts when the first run needs it, and again if its JVM has died.

    The session's files are in the directory of the run for which it was started. ``expected_bytes`` is the size of the
    evidence of the largest run to come; a session gets the settings for that size.
    """

    def __init__(self, master: str, expected_bytes: int = 0) -> None:
        self.master = master
        self._expected_bytes = expected_bytes
        self._session: SparkProcess | None = None
        self._scratch: Path | None = None
        self._held = contextlib.ExitStack()
        self._plain = PlainPaths()

    def get(self, scratch: Path, evidence_bytes: int) -> SparkProcess:
        """The running session. Raises ``SparkUnavailable``."""
        from verifier.spark.session import start

        if self._session is not None and not _answers(self._session):
            self.abort()
        if self._session is None:
            expected_bytes = max(evidence_bytes, self._expected_bytes)
            self._session = start(self.plain(scratch), self.master, expected_bytes, archive=True)
            self._scratch = scratch
        return self._session

    def plain(self, scratch: Path) -> Path:
        """A path to this directory that Spark can handle. It is valid until the session ends. Raises ``OSError``."""
        return self._plain.to(scratch.parent) / scratch.name

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """A context for using the session: raises ``SparkLost`` if the JVM died, in place of any error that follows."""
        from verifier.spark.session import SparkLost

        try:
            yield
            self._check()
        except SparkLost:
            self.abort()
            raise
        except Exception as error:  # a dead JVM can cause an exception of any kind; then ``SparkLost`` replaces it
            try:
                self._check()
            except SparkLost as lost:
                self.abort()
                raise lost from error
            raise

    def _check(self) -> None:
        if self._session is not None:
            self._session.check()

    def keeps(self, scratch: Path) -> bool:
        """Whether the session's files are in this directory."""
        return self._session is not None and self._scratch == scratch

    def at_end(self, held: contextlib.ExitStack) -> None:
        """Closes ``held`` when the session has ended and its files are removed."""
        self._held.enter_context(held)

    def close(self) -> None:
        """Ends the session and its JVM, and removes its files. Does nothing without a session."""
        self._end(at_once=False)

    def abort(self) -> None:
        """Kills the JVM at once, and removes the session's files."""
        self._end(at_once=True)

    def _end(self, *, at_once: bool) -> None:
        session, self._session = self._session, None
        try:
            if session is not None:
                session.abort() if at_once else session.close()
        finally:
            if self._scratch is not None:
                shutil.rmtree(self._scratch, ignore_errors=True)
                self._scratch = None
            self._plain.close()
            self._held.close()

    def __enter__(self) -> Sessions:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._end(at_once=kind is not None)

    def __repr__(self) -> str:
        return f"Sessions({self.master}, {self._session})"


def _answers(session: SparkProcess) -> bool:
    """Whether a session can still run a job."""
    try:
        session.spark.range(1).count()
    except Exception as error:  # py4j and Spark raise many kinds; each means that the session is unusable
        logger.warning("Spark has ended and is started again: %s", (str(error).splitlines() or [repr(error)])[0])
        return False
    return True
