"""What is set on topics and brokers, as this broker knows it: read before it is needed, again when it changes.

Owns the reading into the metadata cache, this broker's layers, and the heeding of /config/changes (Kafka's
ZkConfigManager). Does not own what a change means: ``changed`` is told.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from cluster.broker.config_store import ALL_BROKERS, BROKERS, TOPICS, ConfigStore
from cluster.broker.control.membership.session import Session
from cluster.broker.metadata_cache import MetadataCache
from cluster.config.broker import BrokerConfig
from cluster.config.errors import ConfigError
from cluster.config.layers import BrokerLayers
from cluster.metadata.paths import CONFIG_CHANGES
from cluster.metadata.store import ConnectionLostError, NoNodeError, SessionExpiredError
from cluster.metadata.znodes import MalformedZnode, decode_config_change
from cluster.seams.clock import Clock

logger = logging.getLogger(__name__)

#: News older than this is removed, as in Kafka; here counted from when this broker saw it.
KEEP_CHANGES_MS = 15 * 60_000

#: Told the topic whose configuration has changed, or None: this broker's own.
Changed = Callable[[str | None], Awaitable[None]]
#: Asked after each piece of work: whether others are to have their turn.
IsOver = Callable[[], Awaitable[bool]]


class DynamicConfigs:
    """For one broker, whose file is ``static``."""

    def __init__(
        self, session: Session, cache: MetadataCache, static: BrokerConfig, clock: Clock, changed: Changed
    ) -> None:
        self.store = ConfigStore(session)
        self.layers = BrokerLayers(static)
        #: This broker's configuration as it holds now.
        self.broker_config = static
        self._session = session
        self._cache = cache
        self._clock = clock
        self._changed = changed
        self._seen_ms: dict[str, int] | None = None
        #: What the first look has yet to read again, the last of it first.
        self._read_before: list[tuple[str, str]] = []
        self._own_loaded = False

    def __repr__(self) -> str:
        return f"DynamicConfigs({len(self._seen_ms or ())} changes seen)"

    async def load(self, topics: Iterable[str]) -> None:
        """Have the configurations of ``topics``, and this broker's, at hand. Raises SessionExpiredError.

        It waits while ZooKeeper is out of reach: a log that is opened with the wrong settings is worse than a late one.
        """
        if not self._own_loaded:
            await self._read_own()
        missing = sorted({name for name in topics if not self._cache.has_topic_config(name)})
        await asyncio.gather(*(self._read_topic(name) for name in missing))

    async def heed_changes(self, is_over: IsOver) -> bool:
        """/config/changes has new nodes: read again what they name. False if the turn was over before all was read.

        At the first look all that was read before is read again: its news may have come before we looked. If the
        session ends meanwhile, what is left to heed is new still at the next look, in the next session.
        """
        try:
            return await self._heed_new(is_over)
        except SessionExpiredError:
            logger.info("the session ended while changes of configuration were read")
            return True

    async def _heed_new(self, is_over: IsOver) -> bool:
        names = await self._session.read(lambda: self._session.store.children(CONFIG_CHANGES))
        now_ms = self._clock.monotonic_ms()
        if self._seen_ms is None:
            self._read_before = [(TOPICS, topic) for topic in self._cache.topics_with_config()]
            self._read_before.append((BROKERS, ALL_BROKERS))
            self._seen_ms = dict.fromkeys(names, now_ms)
        while self._read_before:
            await self._heed(*self._read_before[-1])
            self._read_before.pop()
            if await is_over():
                return False
        seen_ms = self._seen_ms = {name: self._seen_ms[name] for name in names if name in self._seen_ms}
        for name in sorted(set(names) - set(seen_ms)):
            path = f"{CONFIG_CHANGES}/{name}"
            try:
                data, _ = await self._session.read(lambda path=path: self._session.store.get(path))  # type: ignore[misc]
                kind, entity = decode_config_change(path, data)
            except (NoNodeError, MalformedZnode) as error:
                logger.warning("a change of configuration cannot be read: %s", error)
            else:
                await self._heed(kind, entity)
            seen_ms[name] = now_ms
            if await is_over():
                return False
        await self._purge(now_ms)
        return True

    async def _heed(self, kind: str, entity: str) -> None:
        if kind == TOPICS:
            if self._cache.has_topic_config(entity):
                await self._read_topic(entity)
            await self._changed(entity)
        elif kind == BROKERS and entity in (ALL_BROKERS, str(self.layers.static.broker_id)):
            before = self.layers
            await self._read_own()
            if self.layers != before:
                await self._changed(None)

    async def _purge(self, now_ms: int) -> None:
        """The first caller removes them; no one needs them twice."""
        for name, seen_ms in list((self._seen_ms or {}).items()):
            if now_ms - seen_ms > KEEP_CHANGES_MS:
                try:
                    await self._session.store.delete(f"{CONFIG_CHANGES}/{name}")
                except NoNodeError:
                    continue
                except ConnectionLostError:
                    return

    async def _read_own(self) -> None:
        """A layer that cannot be meant is left out: the broker goes by its file."""
        static = self.layers.static
        try:
            own = await self.store.read(BROKERS, str(static.broker_id))
            shared = await self.store.read(BROKERS, ALL_BROKERS)
            layers = BrokerLayers(static, own, shared)
            self.broker_config = layers.effective()
        except (MalformedZnode, ConfigError) as error:
            logger.error("broker %d goes by its properties file: %s", static.broker_id, error)
            layers, self.broker_config = BrokerLayers(static), static
        self.layers = layers
        self._own_loaded = True

    async def _read_topic(self, name: str) -> None:
        try:
            self._cache.set_topic_config(name, await self.store.read(TOPICS, name))
        except MalformedZnode as error:
            logger.error("topic %s goes by the broker's defaults: %s", name, error)
            self._cache.set_topic_config(name, {})
