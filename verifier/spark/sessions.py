"""One Spark session for several runs that are judged one after the other. Owns when it is started, and started again.

What a session is is in ``verifier.spark.session``, which is not imported before one is needed.
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
    """The session, started when the first run needs it, and again if its JVM has died. To be used as a context.

    Its files are in the directory of the run that it was started for. ``expected_bytes``: the evidence of the largest
    run to come; a session is sized for it.
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
        """The same directory by a path that Spark takes as it is, as long as the session lives. Raises ``OSError``."""
        return self._plain.to(scratch.parent) / scratch.name

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """While the session is asked: raises ``SparkLost`` if its JVM died, whatever else was raised for that."""
        from verifier.spark.session import SparkLost

        try:
            yield
            self._check()
        except SparkLost:
            self.abort()
            raise
        except Exception as error:  # anything may be how the end of the JVM shows; if so, that is what is raised
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
        """Close this when the session has ended and its files are removed."""
        self._held.enter_context(held)

    def close(self) -> None:
        """End the session and its JVM, and remove its files; without a session, do nothing."""
        self._end(at_once=False)

    def abort(self) -> None:
        """The same, but at once: the JVM is killed."""
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
    try:
        session.spark.range(1).count()
    except Exception as error:  # py4j and Spark raise many kinds; any of them means that it does not answer
        logger.warning("Spark has ended and is started again: %s", (str(error).splitlines() or [repr(error)])[0])
        return False
    return True
