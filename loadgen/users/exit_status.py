"""The exit status of a standalone load that wrote nothing. Owns its message, and the reports of workers to a master.

Locust exits with 0 if it saw no failure, and records without a reported outcome do not count. A status that Locust sets
for failures is kept, and a conducted run has its verdict.
"""

from __future__ import annotations

import logging
from typing import Any

from locust import log
from locust.exception import RPCError
from locust.runners import MasterRunner, WorkerRunner

from loadgen.unwritten import WrittenState

logger = logging.getLogger(__name__)

MESSAGE = "gapless-written"
NOTHING_HEARD = "nothing was acknowledged while it ran"


class MasterTeller:
    """Reports to a worker's master whether anything was written, and until then why not. Does nothing without a master.

    Locust's own reports come every three seconds, and the last one comes too late for a master that is ending.
    """

    def __init__(self, runner: Any) -> None:
        self._runner = runner if isinstance(runner, WorkerRunner) else None
        self._kind: tuple[bool, str] | None = None

    def tell(self, told: WrittenState) -> None:
        """Send the state to the master if it has changed."""
        if self._runner is None or told.kind == self._kind:
            return
        try:
            self._runner.send_message(MESSAGE, told._asdict())
        except RPCError as error:
            logger.info("the master is not told yet: %s", error)
        else:
            self._kind = told.kind


class Workers:
    """What workers reported to this master; nothing if the runner is not a master."""

    def __init__(self) -> None:
        self._told: dict[str, WrittenState] = {}

    def listen(self, runner: Any) -> None:
        """Receive their reports."""
        if isinstance(runner, MasterRunner):
            runner.register_message(MESSAGE, self.hear)

    def hear(self, msg: Any, **_: Any) -> None:
        """Handle one message. A worker that has written something still counts as such after it restarts."""
        told = WrittenState(**msg.data)
        before = self._told.get(msg.node_id, told)
        self._told[msg.node_id] = before if before.has_written else told

    @property
    def told(self) -> WrittenState:
        """The reports of all workers together."""
        return WrittenState.together(self._told.values())


def fail_unless_written(environment: Any, told: WrittenState, where: str) -> None:
    """Report that nothing was written, and make Locust exit with 1, unless it would exit with another status."""
    if told.has_written or environment.process_exit_code:
        return
    logger.critical("nothing was written to %s: %s", where, told.cause or NOTHING_HEARD)
    runner, own = environment.runner, 0
    if len(runner.errors) or len(runner.exceptions):
        own = environment.parsed_options.exit_code_on_error
    elif log.unhandled_greenlet_exception:
        own = 2
    environment.process_exit_code = own or 1
