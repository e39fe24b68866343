"""What is set on topics, as this broker knows it: read from /config/topics before it is needed, again when it changes.

Owns the reading into the metadata cache and the heeding of /config/changes (kafka-semantics 5.5).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from cluster.broker.control.metadata_cache import MetadataCache
from cluster.broker.control.session import Session
from cluster.metadata.store import NoNodeError
from cluster.metadata.znodes import (
    CONFIG_CHANGES,
    MalformedZnode,
    decode_config,
    decode_config_change,
    topic_config_path,
)

logger = logging.getLogger(__name__)


class TopicConfigs:
    """For one broker. ``changed`` is awaited with the name of each topic whose configuration was changed."""

    def __init__(self, session: Session, cache: MetadataCache, changed: Callable[[str], Awaitable[None]]) -> None:
        self._session = session
        self._store = session.store
        self._cache = cache
        self._changed = changed
        self._seen: set[str] | None = None

    def __repr__(self) -> str:
        return f"TopicConfigs({len(self._seen or ())} changes seen)"

    async def load(self, topics: Iterable[str]) -> None:
        """Have the configurations of ``topics`` in the cache. Raises SessionExpiredError.

        It waits while ZooKeeper is out of reach: a log that is opened with the wrong settings is worse than a late one.
        """
        missing = sorted({name for name in topics if not self._cache.has_topic_config(name)})
        await asyncio.gather(*(self._read(name) for name in missing))

    async def heed_changes(self) -> None:
        """/config/changes has new nodes: read again what they name. Those of before our start are no news."""
        names = set(await self._session.read(lambda: self._store.children(CONFIG_CHANGES)))
        new = sorted(names - self._seen) if self._seen is not None else []
        self._seen = names
        for name in new:
            path = f"{CONFIG_CHANGES}/{name}"
            try:
                data, _ = await self._session.read(lambda path=path: self._store.get(path))  # type: ignore[misc]
                kind, entity = decode_config_change(path, data)
            except (NoNodeError, MalformedZnode) as error:
                logger.warning("a change of configuration cannot be read: %s", error)
                continue
            if kind == "topics" and self._cache.has_topic_config(entity):
                await self._read(entity)
            if kind == "topics":
                await self._changed(entity)

    async def _read(self, name: str) -> None:
        path = topic_config_path(name)
        try:
            data, _ = await self._session.read(lambda: self._store.get(path))
            self._cache.set_topic_config(name, decode_config(path, data))
        except NoNodeError:
            self._cache.set_topic_config(name, {})
        except MalformedZnode as error:
            logger.error("topic %s goes by the broker's defaults: %s", name, error)
            self._cache.set_topic_config(name, {})
