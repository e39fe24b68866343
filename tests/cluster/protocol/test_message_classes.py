"""Messages by their names."""

from __future__ import annotations

import pytest

from cluster.protocol import message_classes
from cluster.protocol.apis import INTER_BROKER, SUPPORTED, ApiKey
from cluster.protocol.messages import request_class, response_class


@pytest.mark.parametrize("key", sorted(SUPPORTED.keys() | INTER_BROKER.keys()))
def test_every_message_has_its_name(key: ApiKey) -> None:
    """What is served is there under the names of its classes; Produce and Fetch have codecs of their own."""
    request, response = request_class(key), response_class(key)
    is_coded_elsewhere = key in (ApiKey.PRODUCE, ApiKey.FETCH)
    assert getattr(message_classes, request.__name__, None) is (None if is_coded_elsewhere else request)
    assert getattr(message_classes, response.__name__, None) is (None if is_coded_elsewhere else response)


def test_messages_are_messages() -> None:
    """``Message`` is the class of all of them, requests and answers."""
    assert issubclass(message_classes.MetadataRequest, message_classes.Message)
    assert issubclass(message_classes.MetadataResponse, message_classes.Message)
