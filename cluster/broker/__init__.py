"""The broker process: connections, handlers (one file per API), replicas, metrics, and the wiring of it all.

Owns what happens to a request between its frame and its answer. The decisions behind it live in the pure rooms
(``replication``, ``controller``, ``coordinator``, ``log``), its part in control in ``broker.control``.
"""
