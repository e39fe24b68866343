"""Hostile frames of every API and version, and useless connections: the gate's share of ``make hostile``."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from cluster.process.processes import until
from cluster.protocol import fetch, produce, schema_decoder
from cluster.protocol.apis import INTER_BROKER, SUPPORTED, ApiKey
from cluster.protocol.messages import parse_request_header, request_class
from tests.hostile import crowd
from tests.hostile.absence import Plain
from tests.hostile.assault import FRAMES_TOLD, both, largest
from tests.hostile.crowd import besiege, descriptors_for, flood
from tests.hostile.grammar import request, windows
from tests.hostile.mutations import good, hostile, is_order
from tests.hostile.target import target

#: Frames of the gate, and good requests that their memory is compared with: it is the same after ten times as many.
FRAMES, GOOD = 10_000, 1000
MB = 1_000_000


def decode(frame: bytes) -> None:
    """As a broker does, but that nothing may follow. Raises ``MalformedRequest``."""
    header = parse_request_header(frame)
    body = memoryview(bytearray(frame))[header.body_offset :]
    if header.api_key == ApiKey.PRODUCE:
        produce.parse_request(body, header.api_version)
    elif header.api_key == ApiKey.FETCH:
        fetch.parse_request(body, header.api_version)
    else:
        schema_decoder.decode(request_class(header.api_key), header.api_version, body)


@pytest.mark.parametrize("listener", ["CLIENTS", "PEERS"])
def test_what_is_mutated_is_well_formed(listener: str) -> None:
    """Every version of every API that the listener serves can be drawn, and is understood to its last byte."""
    served = windows(listener)
    assert {*served} == ({*SUPPORTED} if listener == "CLIENTS" else {*SUPPORTED, *INTER_BROKER})
    for api_key, versions in served.items():
        for version in versions:
            for seed in range(20):
                decode(request(api_key, version, seed, Random(seed)).frame())


def test_a_seed_makes_the_same_frame() -> None:
    """Byte by byte, whatever was made before it; and each kind of mutation occurs for both kinds of listener."""
    first = [hostile(seed).wire for seed in range(300)]
    assert [hostile(seed).wire for seed in reversed(range(300))] == first[::-1]
    frames = [hostile(seed) for seed in range(3000)]
    kinds = Counter((frame.listener, frame.kind) for frame in frames)
    assert len(kinds) == 2 * 18
    apis = {(frame.listener, frame.api_key) for frame in frames}
    assert apis == {(name, key) for name in ("CLIENTS", "PEERS") for key in windows(name)}
    assert sum(good(frame.seed).wire == frame.wire for frame in frames) < len(frames) // 20
    assert not any(is_order(frame.wire) for frame in frames)


def test_an_absence_is_told_with_few_of_the_frames_that_were_open() -> None:
    """The largest, of hundreds, one a line; and that there was none."""
    frames = [hostile(seed) for seed in range(200)]
    first, *lines = largest(frames).splitlines()
    assert first == "200 frames were open, of which the largest:"
    assert [line.strip() for line in lines] == [
        repr(frame) for frame in sorted(frames, key=lambda frame: -len(frame.wire))[:FRAMES_TOLD]
    ]
    assert largest([]) == "no frame was open"


@pytest.mark.integration
@pytest.mark.timeout(600)
def test_hostile_frames_harm_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is answered or closes its connection; no traceback, nothing left behind; a producer beside loses nothing."""
    course, peaceful = both(tmp_path, range(FRAMES), range(GOOD))
    with capsys.disabled():
        sys.stdout.write(f"\nhostile frames: {course.line()}\ngood requests: {peaceful.line()}\n")
    assert not course.wrong, "\n".join(course.wrong)
    assert course.counts.frames == FRAMES


@pytest.mark.integration
def test_useless_connections_cost_little_and_are_dropped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A tenth of the crowd of ``make hostile``, and of its memory, after a flood of connections that come and go."""
    counts = {crowd.IDLE: 500, crowd.SLOW: 50, crowd.UNREAD: 20}
    descriptors = descriptors_for(sum(counts.values()))
    with target(tmp_path, descriptors, connections_max_idle_ms="2000") as broker:
        with Plain(broker.port) as plain:
            plain.send(ApiKey.API_VERSIONS, 2)
        before = broker.process.num_fds()
        flood(broker.port, 500)
        assert until(lambda: broker.process.num_fds() <= before, 10)
        siege = besiege(broker, 30, **counts)
    with capsys.disabled():
        sys.stdout.write(f"\nuseless connections: {siege.line()}\n")
    assert siege.wrong(15 * MB, 30) == []
