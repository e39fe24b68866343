"""The chroot of ``zookeeper.connect``, made by the first broker, as Kafka's brokers do.

Owns how: only a session without a chroot sees what is above it. Does not own when (``zookeeper``).
"""

from __future__ import annotations

from collections.abc import Callable

from cluster.metadata.store import ConnectionLostError, MetadataStore, NodeExistsError


async def make_chroot(
    store: MetadataStore, hosts: str, open_store: Callable[[str], MetadataStore], timeout_ms: int
) -> None:
    """Make the chroot of ``hosts``, which is that of ``store``, if there is one and it is missing.

    Raises ``ConnectionLostError`` if ZooKeeper gives no second session within ``timeout_ms``.
    """
    servers, slash, chroot = hosts.partition("/")
    if not chroot or await store.exists("/") is not None:
        return
    above = open_store(servers)
    try:
        await above.start(timeout_ms)
        await above.create(slash + chroot, make_parents=True)
    except NodeExistsError:
        return
    except TimeoutError as error:
        raise ConnectionLostError(str(error)) from error
    finally:
        await above.close()
