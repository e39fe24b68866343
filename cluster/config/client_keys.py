"""The keys that Kafka's clients share (Java spelling and defaults).

Owns that part of their tables alone.
"""

from __future__ import annotations

from cluster.config.keys import INT_MAX, Key, flag, integer, text, texts

COMMON: list[Key] = [
    texts("bootstrap.servers", (), "Brokers to contact first, as host:port. The client learns the others from them."),
    text("client.id", "", "Name of the client, shown in the broker's log."),
    text("client.rack", "", "Rack of the client.", carried=True),
    text("client.dns.lookup", "use_all_dns_ips", "How host names are resolved.", carried=True),
    integer("request.timeout.ms", 30_000, "Maximum wait for the response to a request.", 0, INT_MAX),
    integer("retry.backoff.ms", 100, "Backoff before the first retry. It doubles with each retry.", 0),
    integer("retry.backoff.max.ms", 1000, "Maximum backoff before a retry.", 0),
    integer("reconnect.backoff.ms", 50, "Backoff before the first reconnect. It doubles with each attempt.", 0),
    integer("reconnect.backoff.max.ms", 1000, "Maximum backoff before a reconnect.", 0),
    integer("socket.connection.setup.timeout.ms", 10_000, "Maximum wait for a connection.", 0),
    integer("socket.connection.setup.timeout.max.ms", 30_000, "The same after repeated failures.", 0),
    integer("connections.max.idle.ms", 540_000, "Idle connections are closed after this time."),
    integer("metadata.max.age.ms", 300_000, "Maximum age of metadata before it is refreshed.", 0),
    integer("send.buffer.bytes", 131_072, "SO_SNDBUF.", -1, carried=True),
    flag("enable.metrics.push", True, "Push client metrics if the cluster requests them.", carried=True),
    texts("metric.reporters", (), "Java classes that report metrics.", carried=True),
    flag("auto.include.jmx.reporter", True, "Report metrics through JMX.", carried=True),
    integer("metrics.num.samples", 2, "Number of samples kept for each metric.", 1, carried=True),
    text("metrics.recording.level", "INFO", "Level of detail of metrics.", ("INFO", "DEBUG", "TRACE"), carried=True),
    integer("metrics.sample.window.ms", 30_000, "Time window of a metrics sample.", 0, carried=True),
    text("security.protocol", "PLAINTEXT", "Protocol for communication with brokers.", ("PLAINTEXT",)),
]
