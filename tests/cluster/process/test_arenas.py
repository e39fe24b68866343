"""What the C library is told about its heaps, where it can be told."""

from __future__ import annotations

import ctypes
import subprocess
import sys

from cluster.process.arenas import give_back_memory, share_arenas

#: Sixteen threads allocate; what glibc tells then has a line with ``Arena`` for each heap.
THREADS = """
import ctypes, sys, threading
from cluster.process.arenas import share_arenas
if sys.argv[1] == "share":
    share_arenas()
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
library.malloc.argtypes = [ctypes.c_size_t]
barrier = threading.Barrier(16)
def work():
    barrier.wait()
    for _ in range(100):
        library.malloc(3000)
threads = [threading.Thread(target=work) for _ in range(16)]
for each in threads: each.start()
for each in threads: each.join()
library.malloc_stats()
"""


def test_threads_share_a_heap() -> None:
    """Where glibc serves, sixteen threads have one of them; elsewhere nothing happens, and nothing is raised."""
    has_setting = hasattr(ctypes.CDLL(None), "mallopt")
    if not has_setting:
        assert share_arenas() is False
        return
    found = {
        how: subprocess.run(
            [sys.executable, "-c", THREADS, how], capture_output=True, text=True, check=True, timeout=60
        ).stderr.count("Arena ")
        for how in ("share", "alone")
    }
    assert found["share"] <= 1 < found["alone"]


#: Every second one of many blocks is freed: the others keep all pages of the heap between them.
HOLES = """
import sys
from cluster.process.arenas import give_back_memory
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
blocks = [bytearray(20_000) for _ in range(2000)]
del blocks[::2]
before = resident()
give_back_memory()
print(before - resident())
"""


def test_free_memory_between_what_is_in_use_goes_back() -> None:
    """Of 20 MB in holes of five pages at least 10 MB; without glibc nothing happens, and nothing is raised."""
    give_back_memory()
    if hasattr(ctypes.CDLL(None), "malloc_trim"):
        told = subprocess.run([sys.executable, "-c", HOLES], capture_output=True, text=True, check=True, timeout=60)
        assert int(told.stdout) > 10_000_000
