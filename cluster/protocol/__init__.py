"""protocol: Kafka's wire, as pure functions of bytes: framing, codecs, record batch v2, error codes, compression.

Owns layouts and the refusal of bytes that do not follow them. Whatever a client sends, only ``MalformedRequest``,
``CorruptBatch`` and ``InvalidBatch`` come out, at once and without memory that the sender did not pay for in bytes.
Does not own sockets (``cluster.seams``), nor what a request means (``cluster.broker``).
"""
