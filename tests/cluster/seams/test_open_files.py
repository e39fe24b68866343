"""The limit of open files: raised at a broker's start, and named when it is reached."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator

import pytest

from cluster.seams.os_storage import OsStorage, raise_open_file_limit


@pytest.fixture
def low_limit() -> Iterator[int]:
    """A limit a little above what is open, as long as the test runs."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = max(map(int, os.listdir("/proc/self/fd"))) + 20
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
    yield limit
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_limit_is_raised_to_what_the_machine_allows(low_limit):
    """The soft limit becomes the hard one."""
    most = raise_open_file_limit()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, most)
    assert most == -1 or most > low_limit


def test_a_file_too_many_is_said_with_the_limit_and_the_fix(low_limit, tmp_path):
    """Whoever hosts more segments than the limit allows reads which limit, and how to raise it."""
    path = str(tmp_path / "log")
    held = _hold_all()
    try:
        with pytest.raises(OSError, match=f"may have {low_limit} files open and has; raise that with ulimit") as told:
            OsStorage().open(path)
    finally:
        for descriptor in held:
            os.close(descriptor)
    assert told.value.errno == errno.EMFILE
    assert told.value.filename == path


def _hold_all() -> list[int]:
    """Open descriptors until there is no more."""
    held: list[int] = []
    while True:
        try:
            held.append(os.dup(2))
        except OSError:
            return held
