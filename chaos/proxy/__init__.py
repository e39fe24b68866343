"""Our server of Toxiproxy's HTTP API: proxies, the links of their connections, and toxics on those links.

A leaf room: it imports ``cluster.seams`` and nothing else of ours, and runs in a process of its own. It owns the
API, the listeners, the bytes and the toxics. It does not own names of links, faults or schedules: it knows proxies
by name alone. ``docs/proxy.md`` lists every difference from Toxiproxy 2.12.0.

From the socket upwards: ``sockets`` (the one module with socket options), ``pipe`` and ``toxics`` (pure),
``link`` (one direction of one connection), ``connection``, ``proxy`` (one listener), ``registry`` (all of them),
``api`` (routes), ``http_server``, ``server`` (the process).
"""
