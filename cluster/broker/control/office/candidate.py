"""Being controller, or not: elections, taking office, resigning, and the events that only a controller heeds.

Owns the one ``Office`` that exists while this broker is controller. Everything but ``resign`` runs in the event queue;
``resign`` may come at any moment (a session expires) and makes whatever runs fail at its next write.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from cluster.broker.control.controller.epoch_fence import ControllerMovedError, EpochFence, NotController
from cluster.broker.control.office.elector import Elector
from cluster.broker.control.office.office import Office, OfficeParts, enter_office
from cluster.metadata.paths import BROKER_IDS, CONTROLLER, DELETE_TOPICS, TOPICS
from cluster.metadata.store import StoreError
from cluster.seams.out_of_memory import halt_if_out_of_memory

logger = logging.getLogger(__name__)

#: The pause before running again after an office was lost to an error.
RETRY_S = 0.5
#: How long one event of the queue may take while ZooKeeper is there; nothing else of this cluster is decided meanwhile.
EVENT_DEADLINE_S = 30.0
#: The same for taking office, which reads the state of every partition.
TAKE_OVER_DEADLINE_S = 300.0

_Result = TypeVar("_Result")


class Candidate:
    """One broker's chance to be controller, for as long as the process lives."""

    def __init__(self, parts: OfficeParts) -> None:
        self._parts = parts
        self._queue = parts.queue
        self._elector = Elector(parts.session, parts.broker_id, parts.clock, parts.rules)
        self._office: Office | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._is_closed = False
        self.controller_id: int | None = None

    def __repr__(self) -> str:
        return f"Candidate(broker {self._parts.broker_id}, controller {self.controller_id}, {self._office})"

    @property
    def is_active(self) -> bool:
        return self._office is not None

    def watch(self) -> None:
        """Learn of everything that a controller, or someone who may become one, must know. Once."""
        store = self._parts.session.store
        store.watch_data(CONTROLLER, self.look_again)
        for path, name, heed, patient in (
            (BROKER_IDS, "brokers", self._brokers_changed, False),
            (TOPICS, "topics", lambda office: office.topics.topics_changed(), True),
            (DELETE_TOPICS, "deletions", lambda office: office.deletion.deletions_changed(), True),
        ):
            store.watch_children(path, self._poster(name, heed, patient=patient))

    def look_again(self) -> None:
        """Look at /controller soon, and run if no one holds it."""
        self._queue.post_once("controller", self.incumbent_changed)

    async def incumbent_changed(self) -> None:
        """/controller may have changed. A broker that is not registered does not run; it looks again when it is."""
        if not self._parts.may_run():
            return
        incumbent = await self._elector.incumbent()
        if incumbent is not None and incumbent.ours and self._office is None:
            # Left by a resignation, or won by an election whose answer came too late to matter.
            await self._elector.release()
            incumbent = await self._elector.incumbent()
        if incumbent is None:
            self.resign("/controller is gone")
            fence = await self._elector.run()
            if fence is not None:
                await self._take_office(fence)
                return
            incumbent = await self._elector.incumbent()
        if incumbent is None:
            self._follow(None)
            self.look_again()
        elif not incumbent.ours:
            self.resign(f"broker {incumbent.broker_id} is controller")
            self._follow(incumbent.broker_id)

    async def serve(self, work: Callable[[Office], Awaitable[_Result]], *, patient: bool = False) -> _Result:
        """Do ``work`` in the queue, if we are controller then; ``patient``: after all that is not.

        Raises NotController, QueueClosed or what it raises.
        """
        if self._office is None:
            # Said at once: the queue may be waiting for ZooKeeper.
            raise NotController(f"broker {self._parts.broker_id} is not the controller")
        return await self._queue.run(lambda: self._work(work), patient=patient)

    async def heed_now(self, work: Callable[[Office], Awaitable[None]]) -> None:
        """For an event of the queue itself: do ``work`` at once if we are controller, else nothing."""
        await self._heed(work, self._office)

    def resign(self, reason: str) -> None:
        """Stop being controller now; nothing happens if we are not."""
        office, self._office = self._office, None
        if office is not None:
            epoch = office.controller.epoch
            office.close()
            logger.warning("broker %d resigns as controller of epoch %d: %s", self._parts.broker_id, epoch, reason)
            self._parts.journal("controller-resigned", {"epoch": epoch, "reason": reason})
            self._follow(None)

    def close(self) -> None:
        """The broker stops: resign, and run no more."""
        self._is_closed = True
        self.resign("the broker stops")
        if self._retry is not None:
            self._retry.cancel()

    async def _take_office(self, fence: EpochFence) -> None:
        parts = self._parts
        logger.info("broker %d is elected controller of epoch %d", parts.broker_id, fence.epoch)
        parts.journal("controller-elected", {"epoch": fence.epoch})

        office = self._office = enter_office(parts, fence, self._heed, self.look_again)
        self._follow(parts.broker_id)

        async def begin(taken: Office) -> None:
            await taken.controller.take_over()
            await taken.reassignments.resume()
            await taken.deletion.deletions_changed()

        await self._heed(begin, office, TAKE_OVER_DEADLINE_S)

    def _poster(self, name: str, heed: Callable[[Office], Awaitable[None]], *, patient: bool) -> Callable[[], None]:
        return lambda: self._queue.post_once(name, lambda: self._heed(heed, self._office), patient=patient)

    async def _brokers_changed(self, office: Office) -> None:
        if await office.controller.brokers_changed():
            await office.deletion.deletions_changed()

    async def _heed(
        self,
        work: Callable[[Office], Awaitable[None]],
        office: Office | None,
        deadline_s: float = EVENT_DEADLINE_S,
    ) -> None:
        """Do something that no one waits for, on behalf of ``office``; nothing if that is not ours anymore."""
        if office is None or office is not self._office:
            return
        try:
            async with self._parts.session.within(deadline_s):
                await work(office)
                # Whatever was done may have brought a replica into the ISR that a reassignment waits for.
                await office.reassignments.advance()
        except (ControllerMovedError, StoreError, TimeoutError) as error:
            await self._fall(office, error)
        except Exception as error:
            halt_if_out_of_memory(error)
            logger.exception("controller epoch %d failed", office.controller.epoch)
            await self._fall(office, None)

    async def _work(self, work: Callable[[Office], Awaitable[_Result]]) -> _Result:
        office = self._office
        if office is None:
            raise NotController(f"broker {self._parts.broker_id} is not the controller")
        try:
            async with self._parts.session.within(EVENT_DEADLINE_S):
                result = await work(office)
                await office.reassignments.advance()
            return result
        except (ControllerMovedError, StoreError, TimeoutError) as error:
            # After a timeout too: what was being written may be there or not, and only a new look can tell.
            await self._fall(office, error)
            raise NotController(str(error)) from error

    async def _fall(self, office: Office, error: Exception | None) -> None:
        """This office cannot continue: resign, let go of /controller, and look again in a while."""
        if self._office is office:
            self.resign("an error" if error is None else f"{type(error).__name__}: {error}")
        try:
            if not isinstance(error, ControllerMovedError):
                await self._elector.release()
        except StoreError as failure:
            logger.debug("/controller could not be released: %r", failure)
        if not self._is_closed:
            if self._retry is not None:
                # It fell a moment ago too. The timer that is forgotten would outlive the broker.
                self._retry.cancel()
            self._retry = asyncio.get_running_loop().call_later(RETRY_S, self.look_again)

    def _follow(self, controller_id: int | None) -> None:
        if controller_id != self.controller_id:
            self.controller_id = controller_id
            if controller_id is not None:
                logger.info("the controller is broker %d", controller_id)
            self._parts.controller_changed(controller_id)
