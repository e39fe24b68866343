"""The five seams: Clock, Random, Transport, MetadataStore, Storage (docs/architecture.md).

Everything non-deterministic reaches the cluster through one of these, so that the very same code runs on
real sockets, files and ZooKeeper, and on a virtual-time loop in one process. This room owns the shapes and
the real forms of Clock, Random, Transport and Storage, and the in-memory forms beside them. The shape of the
fifth, ``MetadataStore``, lives with its two forms in ``cluster.metadata``.

Timers need no seam of their own: asyncio's loop is the timer, and under simulation the loop is virtual.
"""
