"""The keys that Kafka's clients share (Java spelling and defaults).

Owns that part of their tables alone.
"""

from __future__ import annotations

from cluster.config.keys import INT_MAX, Key, flag, integer, text, texts

COMMON: list[Key] = [
    texts("bootstrap.servers", (), "host:port of some brokers; the others are learned from them."),
    text("client.id", "", "A name for the broker's log."),
    text("client.rack", "", "The rack of this client.", carried=True),
    text("client.dns.lookup", "use_all_dns_ips", "How a host name is resolved.", carried=True),
    integer("request.timeout.ms", 30_000, "Longest wait for the answer to one request.", 0, INT_MAX),
    integer("retry.backoff.ms", 100, "First pause before a retry; it doubles with each.", 0),
    integer("retry.backoff.max.ms", 1000, "Longest pause before a retry.", 0),
    integer("reconnect.backoff.ms", 50, "First pause before connecting again; it doubles with each.", 0),
    integer("reconnect.backoff.max.ms", 1000, "Longest pause before connecting again.", 0),
    integer("socket.connection.setup.timeout.ms", 10_000, "Longest wait for a connection.", 0),
    integer("socket.connection.setup.timeout.max.ms", 30_000, "The same after several failures.", 0),
    integer("connections.max.idle.ms", 540_000, "Age at which an idle connection is closed."),
    integer("metadata.max.age.ms", 300_000, "Age at which metadata is fetched again.", 0),
    integer("send.buffer.bytes", 131_072, "SO_SNDBUF.", -1, carried=True),
    flag("enable.metrics.push", True, "Push client metrics where the cluster asks for them.", carried=True),
    texts("metric.reporters", (), "Java classes that are told of metrics.", carried=True),
    flag("auto.include.jmx.reporter", True, "Tell JMX of metrics.", carried=True),
    integer("metrics.num.samples", 2, "Samples of a metric.", 1, carried=True),
    text("metrics.recording.level", "INFO", "What is measured.", ("INFO", "DEBUG", "TRACE"), carried=True),
    integer("metrics.sample.window.ms", 30_000, "Time of a sample.", 0, carried=True),
    text("security.protocol", "PLAINTEXT", "How brokers are talked to.", ("PLAINTEXT",)),
]
