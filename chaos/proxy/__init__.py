"""A server with Toxiproxy's HTTP API: proxies, the links of their connections, and toxics on those links.

Runs in its own process. Owns the API, the listeners, the bytes and the toxics. Does not own what links, faults or
schedules are: it knows proxies only by name. ``docs/proxy.md`` lists every difference from Toxiproxy 2.12.0.

From the socket upwards: ``sockets`` (the one module with socket options), ``pipe`` and ``toxics`` (pure),
``link`` (one direction of one connection), ``connection``, ``proxy`` (one listener), ``registry`` (all of them),
``api`` (routes), ``http_server``, ``server`` (the process).
"""
