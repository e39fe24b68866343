"""The classes of messages under their own names: ``OffsetCommitRequest``, ``MetadataResponse`` and so on.

Owns the names, of every API that a broker serves but Produce and Fetch, which have codecs of their own. Does not own
the classes, which kafka-python makes of schemas (``kafka_schemas``, ``interbroker``). What they are to mypy says the
stub beside this module, which ``cluster.protocol.stubs`` makes of the same schemas.

``Message`` is any message, ``Request[MetadataResponse]`` a request that is answered so; ``Request`` is for annotations
only. For a class by its number, where no one knows which it will be, there is ``cluster.protocol.messages``.
"""

from __future__ import annotations

from cluster.protocol.apis import INTER_BROKER, SUPPORTED, ApiKey
from cluster.protocol.kafka_schemas import ApiMessage
from cluster.protocol.messages import request_class, response_class

Message = Request = ApiMessage

for _key in SUPPORTED.keys() | INTER_BROKER.keys():
    if _key not in (ApiKey.PRODUCE, ApiKey.FETCH):
        globals().update({made.__name__: made for made in (request_class(_key), response_class(_key))})
