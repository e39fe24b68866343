"""One Spark session for several runs that are judged one after the other. Owns when it is started, and started again.

What a session is stands in ``verifier.spark``, which is not imported before one is needed.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verifier.spark import Session

logger = logging.getLogger(__name__)


class Sessions:
    """The session, started when the first run needs it, and again if its JVM has died. To be used as a context.

    Its files are in the directory of the run that it was started for. ``expected_bytes``: the evidence of the largest
    run to come; a session is laid out for what it is told.
    """

    def __init__(self, master: str, expected_bytes: int = 0) -> None:
        self.master = master
        self._expected_bytes = expected_bytes
        self._session: Session | None = None
        self._scratch: Path | None = None

    def get(self, scratch: Path, evidence_bytes: int) -> Session:
        """The running session. Raises ``SparkUnavailable``."""
        from verifier.spark import start

        if self._session is not None and not _answers(self._session):
            self.close()
        if self._session is None:
            self._scratch = scratch
            self._session = start(scratch, self.master, max(evidence_bytes, self._expected_bytes))
        return self._session

    def keeps(self, scratch: Path) -> bool:
        """Whether the session's files are in this directory."""
        return self._session is not None and self._scratch == scratch

    def close(self) -> None:
        """End the session and its JVM, and remove its files; without a session, do nothing."""
        if self._session is not None:
            self._session.close()
            self._session = None
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    def __enter__(self) -> Sessions:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Sessions({self.master}, {self._session})"


def _answers(session: Session) -> bool:
    try:
        session.spark.range(1).count()
    except Exception as error:
        logger.warning("Spark has ended and is started again: %s", (str(error).splitlines() or [repr(error)])[0])
        return False
    return True
