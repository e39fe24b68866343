"""Which answers are encoded off the event loop."""

from __future__ import annotations

from cluster.broker.portions import is_large
from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import response_class


def test_an_answer_is_large_by_its_structures_or_its_bytes() -> None:
    """What a leader is told of ten members may have ten megabytes."""
    response = response_class(ApiKey.JOIN_GROUP)

    def told(members: int, size_bytes: int) -> bool:
        each = response.JoinGroupResponseMember(member_id="m", group_instance_id=None, metadata=bytes(size_bytes))
        return is_large(response(members=[each] * members))

    assert not told(10, 1000)
    assert not told(1, 900_000)
    assert told(10, 900_000)
    assert told(1001, 0)
