"""A process that takes its own memory has none left for anything else, until it gives it back."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS is Linux's")

SCRIPT = """
import resource, sys
from cluster.seams.memory_balloon import MemoryBalloon
balloon = MemoryBalloon()
had = [bytearray(1 << 16) for _ in range(100)]
del had
def fits(size):
    try:
        return bool(bytearray(size))
    except MemoryError:
        return False
balloon.fill(int(sys.argv[1]))
during = fits(1 << 14), fits(1 << 23)
limited = resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
balloon.release()
# not of getrusage, which begins with the peak of the process that started this one
resident_kb = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(*during, limited, fits(1 << 23), resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY)
print(resident_kb < 200_000)
"""


@pytest.mark.parametrize(
    ("spare_bytes", "found"), [(0, "False False True True False"), (2 << 20, "True False True True False")]
)
def test_what_is_taken_is_gone_until_it_is_given_back(spare_bytes: int, found: str) -> None:
    """Nothing or a little is left, and the process cannot grow; then it is as before. The machine hardly notices."""
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(spare_bytes)], capture_output=True, timeout=60, check=True, text=True
    )
    assert ended.stdout.splitlines() == [found, "True"], ended
