"""What a process does that gets no more memory: it halts with a line, wherever that shows; others raise as ever."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from typing import cast

import pytest

from cluster.protocol.batch import CODEC_ZSTD
from cluster.protocol.compression import compress, decompress
from cluster.seams import out_of_memory
from cluster.seams.out_of_memory import LINE, STATUS, halt_if_out_of_memory

limited = pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS is Linux's")

#: A limit a little above what the process has, or none; then something happens.
SCRIPT = """
import asyncio, logging, resource, sys, threading, time
from cluster.seams.out_of_memory import halt_if_out_of_memory, halt_without_memory, watch
how, is_armed, spare = sys.argv[1], sys.argv[2] == "armed", int(sys.argv[3])
logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
if is_armed:
    halt_without_memory()
def take():
    kept = []
    while True:
        kept.append(bytearray(1 << 20))
def caught():
    try:
        take()
    except Exception as error:
        halt_if_out_of_memory(error)
        print("went on", type(error).__name__)
class Finalized:
    def __del__(self):
        take()
async def called():
    loop = asyncio.get_running_loop()
    watch(loop)
    loop.call_soon(take)
    await asyncio.sleep(0.2)
async def kept():
    async def work():
        take()
    watch(asyncio.get_running_loop())
    task = asyncio.create_task(work(), name="kept")
    await asyncio.sleep(0.2)
    print("went on with", task.get_name())
def thread():
    started = threading.Thread(target=print, args=("started",))
    started.start()
    started.join()
def in_thread():
    started = threading.Thread(target=take)
    if spare >= 0:
        started.start()
        started.join()
def refuse(*_):
    raise MemoryError
def in_executor():
    # what tells the event loop that a thread has done its work
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(1) as pool:
        pool.submit(time.sleep, 0.1).add_done_callback(refuse)
def in_json_port():
    from cluster.seams.json_port import JsonPort, ask_json
    port = JsonPort(refuse, 0)
    ask_json(f"127.0.0.1:{port.port}", {}, 10.0)
def in_http_port(broken="application"):
    from cluster.seams import http_port
    if broken != "application":
        http_port._PageHandler.handle = refuse
    port = http_port.HttpPort(refuse, 0, "127.0.0.1")
    from urllib.request import urlopen
    urlopen(f"http://127.0.0.1:{port.port}/").read()
def in_accept():
    from cluster.seams import asyncio_transport
    asyncio_transport.AsyncioConnection = lambda *_, **named: refuse()
    async def main():
        watch(asyncio.get_running_loop())
        port = await asyncio_transport.AsyncioTransport().listen("127.0.0.1", 0, None)
        reader, writer = await asyncio.open_connection("127.0.0.1", port.port)
        await reader.read(1)
        writer.close()
    asyncio.run(main())
def limit():
    size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + spare, resource.RLIM_INFINITY))
work = {"caught": caught, "finalized": lambda: Finalized() and None, "called": lambda: asyncio.run(called()),
        "kept": lambda: asyncio.run(kept()),
        "thread": thread, "in-thread": in_thread, "executor": in_executor, "json port": in_json_port,
        "http port": in_http_port, "http handler": lambda: in_http_port("handler"), "accept": in_accept}[how]
if spare >= 0:
    limit()
work()
"""
#: Enough for a thread to begin, and little more.
ROOM = 64 * 2**20
#: Of a thread, where the system is not told otherwise.
STACK = 8 * 2**20


def run(how: str, armed: str, spare: int) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, how, armed, str(spare)], capture_output=True, timeout=60, check=False
    )


@limited
@pytest.mark.parametrize("how", ["caught", "finalized", "called", "kept", "in-thread"])
def test_a_process_that_gets_no_more_memory_halts(how: str) -> None:
    """Whoever catches it, and where no one does: in a callback, a task that no one awaits, a thread, a finalizer. With
    a line that says where."""
    ended = run(how, "armed", ROOM)
    assert ended.returncode == STATUS, ended
    assert ended.stderr.startswith(LINE), ended.stderr
    assert b"CRITICAL cluster.seams.out_of_memory: it got no more memory, and halts: MemoryError" in ended.stderr
    assert b" take" in ended.stderr and b"Traceback" not in ended.stderr


@pytest.mark.parametrize("how", ["executor", "json port", "http port", "http handler", "accept"])
def test_what_libraries_keep_to_themselves_halts_it_too(how: str) -> None:
    """An executor logs what it could not tell the loop, which would wait forever; a server prints a traceback, or
    nothing at all, and serves on; and asyncio drops what fails when it accepts a connection."""
    ended = run(how, "armed", -1)
    assert ended.returncode == STATUS, ended
    assert ended.stderr.startswith(LINE) and b"Traceback" not in ended.stderr, ended.stderr


@limited
@pytest.mark.parametrize("spare_kb", [0, 8, 16, 1024])
def test_a_thread_that_has_no_room_halts_the_process(spare_kb: int) -> None:
    """With room for the stack alone, Python 3.11 would wait for the thread forever, on the event loop or elsewhere."""
    ended = run("thread", "armed", STACK + spare_kb * 1024)
    assert (ended.returncode, ended.stdout) == (STATUS, b""), ended
    assert ended.stderr.startswith(LINE), ended.stderr


@limited
def test_a_thread_that_has_room_starts() -> None:
    """The legal neighbor: the look for room takes none."""
    assert run("thread", "armed", ROOM).stdout == b"started\n"


@limited
def test_a_process_that_did_not_ask_for_it_goes_on() -> None:
    """Simulations and clients raise ``MemoryError`` as ever."""
    ended = run("caught", "unarmed", ROOM)
    assert (ended.returncode, ended.stdout) == (0, b"went on MemoryError\n"), ended


def test_only_memory_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also as the cause of another error, or as what was handled when that was raised."""
    halted: list[BaseException | None] = []
    monkeypatch.setattr(out_of_memory, "_halt", halted.append)
    monkeypatch.setattr(out_of_memory, "_reserve", [b""])
    for error in (None, ValueError("x"), OSError(28, "full"), KeyError("k")):
        halt_if_out_of_memory(error)
    assert halted == []
    own_cause = ValueError("of itself")
    own_cause.__cause__ = own_cause
    halt_if_out_of_memory(own_cause)
    assert halted == []
    as_cause, while_handled = ValueError("its cause"), ValueError("while it was handled")
    as_cause.__cause__, while_handled.__context__ = MemoryError(), MemoryError()
    memory = [MemoryError(), as_cause, while_handled]
    for each in memory:
        halt_if_out_of_memory(each)
    assert halted == memory


def test_tasks_are_made_with_whatever_asyncio_hands_on() -> None:
    """Later Pythons give a task's name to the factory, instead of setting it afterwards."""

    async def work() -> str:
        return "done"

    async def main() -> None:
        loop = asyncio.get_running_loop()
        out_of_memory.watch(loop)
        factory = loop.get_task_factory()
        assert factory is not None
        task = cast("Callable[..., asyncio.Task[str]]", factory)(loop, work(), name="named")
        assert (task.get_name(), await task) == ("named", "done")

    asyncio.run(main())


@limited
def test_a_batch_is_not_corrupt_because_there_is_no_room_for_it() -> None:
    """A follower that took it for corrupt, or a producer that was told so, would act on what is not true."""
    import resource

    packed = compress(CODEC_ZSTD, bytes(1000))
    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", encoding="ascii") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + 32 * 2**20, before[1]))
    try:
        with pytest.raises(MemoryError):
            decompress(CODEC_ZSTD, packed)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert decompress(CODEC_ZSTD, packed) == bytes(1000)
