"""The six seams: Clock, Random, Transport, Selector, MetadataStore, Storage (docs/design.md "Pure decisions, six
seams").

Everything non-deterministic reaches the cluster through one of these, so that the very same code runs on
real sockets, files and ZooKeeper, and on a virtual-time loop in one process. This room owns the shapes and
the real forms of all but ``MetadataStore``, which lives with its two forms in ``cluster.metadata``, and the in-memory
forms beside them. ``Selector`` is the transport of a client without an event loop; beside it stands ``Runner``, which
carries such a client on: a thread, or in memory the loop of everything else.

Timers need no seam of their own: asyncio's loop is the timer, and under simulation the loop is virtual.
"""
