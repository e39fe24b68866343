"""Stored configurations in ZooKeeper: /config/topics and /config/brokers, and the news of their change.

Owns reading and compare-and-set writing by any broker, as Kafka's ZkAdminManager does: no controller is needed, the
topic's own node is checked in the same multi instead. Does not own what a configuration may hold.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from cluster.broker.control.membership.session import Session
from cluster.metadata.paths import CONFIG_CHANGE_PREFIX, config_path, topic_path
from cluster.metadata.store import (
    BadVersionError,
    Check,
    ConnectionLostError,
    Create,
    NodeExistsError,
    NoNodeError,
    Operation,
    SetData,
)
from cluster.metadata.znodes import decode_config, encode_config, encode_config_change

logger = logging.getLogger(__name__)

#: The kinds of things that have a configuration, as their directories are called.
TOPICS = "topics"
BROKERS = "brokers"
#: The name under /config/brokers of what holds for all brokers.
ALL_BROKERS = "<default>"

#: The stored texts -> those to be stored. May raise; called again after a concurrent change.
Alter = Callable[[dict[str, str]], Mapping[str, str]]


class NoSuchTopic(LookupError):
    """The topic does not exist (anymore)."""


class ConfigStore:
    """For one broker."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._store = session.store

    def __repr__(self) -> str:
        return f"ConfigStore({self._session!r})"

    async def read(self, kind: str, name: str) -> dict[str, str]:
        """What is stored; empty if nothing is. Raises MalformedZnode, SessionExpiredError."""
        found, _ = await self._read(config_path(kind, name))
        return found

    async def alter(self, kind: str, name: str, change: Alter) -> None:
        """Store what ``change`` makes of what is stored, and tell all brokers.

        Raises what ``change`` raises, NoSuchTopic, MalformedZnode, SessionExpiredError.
        """
        path = config_path(kind, name)
        while True:
            checks = await self._checks(kind, name)
            stored, version = await self._read(path)
            wanted = dict(change(stored))
            if wanted == stored:
                return
            data = encode_config(wanted)
            write: Operation = Create(path, data) if version is None else SetData(path, data, version)
            try:
                await self._session.write([*checks, write])
                break
            except (BadVersionError, NodeExistsError, NoNodeError):
                logger.info("%s changed concurrently; reading it again", path)
        logger.info("%s %s: configuration is now %.1000s", kind, name, wanted)
        await self._tell(kind, name)

    async def check(self, kind: str, name: str, change: Alter) -> None:
        """What ``alter`` would raise, without the writing."""
        await self._checks(kind, name)
        stored, _ = await self._read(config_path(kind, name))
        change(stored)

    async def _checks(self, kind: str, name: str) -> list[Operation]:
        """A topic must be there still when its configuration is written: else the next of its name would get it."""
        if kind != TOPICS:
            return []
        stat = await self._session.read(lambda: self._store.exists(topic_path(name)))
        if stat is None:
            raise NoSuchTopic(name)
        return [Check(topic_path(name), stat.version)]

    async def _read(self, path: str) -> tuple[dict[str, str], int | None]:
        try:
            data, stat = await self._session.read(lambda: self._store.get(path))
        except NoNodeError:
            return {}, None
        return decode_config(path, data), stat.version

    async def _tell(self, kind: str, name: str) -> None:
        """One more node in /config/changes. After a lost answer there may be two, which does no harm."""
        generation = self._session.generation
        while True:
            try:
                await self._store.create(CONFIG_CHANGE_PREFIX, encode_config_change(kind, name), sequence=True)
                return
            except ConnectionLostError:
                await self._session.reconnected(generation)
