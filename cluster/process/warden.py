"""The warden: a process beside the owner that cleans up when the owner is gone, however it went.

Owns that alone: it watches the owner's pipe, and when that closes without a goodbye it ends every child it was told
of and every process that carries the run's mark, stopped ones too, and removes the temporary directories it was told
of. It does nothing else, ever. The owner's end of the pipe is ``WardenLink``.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from typing import Any

import psutil

from cluster.process.handle import ChildRecord
from cluster.process.log_files import open_log
from cluster.process.processes import find, is_alive, marked, signal_quietly
from cluster.process.signals import held_signals

#: Everything must be over 10 s after the owner's death.
CLEANUP_LIMIT_S = 8.0
_GOODBYE_S = 5.0
_BOOT = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from cluster.process.warden import main; main(sys.argv[2], sys.argv[3])"
)


class WardenLink:
    """The owner's side: starts the warden, tells it what to watch, and dismisses it at the end.

    A warden that died is started again and told everything again. Not thread-safe: the Supervisor's lock is held.
    """

    def __init__(self, marker: str, directory: str) -> None:
        self._marker = marker
        self._directory = directory
        self._facts: dict[str, dict[str, Any]] = {}
        self._process, self._creation_time = self._start()

    def __repr__(self) -> str:
        return f"WardenLink(pid {self._process.pid}, {len(self._facts)} facts)"

    def record(self) -> ChildRecord:
        """The warden is a child too."""
        return ChildRecord("warden", "warden", self._process.pid, self._creation_time, self._process.poll())

    def watch(self, key: str, process: psutil.Process) -> None:
        """End this process if the owner dies."""
        self._tell({"watch": key, "pid": process.pid, "creation_time": process.create_time()})

    def watch_directory(self, path: str) -> None:
        """Remove this directory and all in it if the owner dies."""
        self._tell({"watch": path, "directory": path})

    def forget(self, key: str) -> None:
        if self._facts.pop(key, None) is not None:
            self._send([{"forget": key}])

    def dismiss(self) -> None:
        """Say goodbye and wait until the warden is gone."""
        try:
            self._process.communicate(b'{"goodbye": true}\n', timeout=_GOODBYE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def _tell(self, fact: dict[str, Any]) -> None:
        self._facts[fact["watch"]] = fact
        self._send([fact])

    def _send(self, messages: Iterable[dict[str, Any]]) -> None:
        try:
            self._write(messages)
        except BrokenPipeError:
            self._process.communicate()
            self._process, self._creation_time = self._start()
            self._write(self._facts.values())

    def _write(self, messages: Iterable[dict[str, Any]]) -> None:
        if self._process.stdin is None:
            raise BrokenPipeError
        self._process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        self._process.stdin.flush()

    def _start(self) -> tuple[subprocess.Popen[bytes], float]:
        # Without any run's mark: the warden of an outer run must leave this one alone, so that it can do its work.
        prefix = self._marker.rpartition("_")[0]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(prefix)}
        with held_signals():
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _BOOT, json.dumps(sys.path), self._marker, self._directory],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd="/",
                start_new_session=True,
            )
            return process, psutil.Process(process.pid).create_time()


class WardenWatch:
    """What the warden knows, and what it does at the end."""

    def __init__(self, marker: str) -> None:
        self._marker = marker
        self._processes: dict[str, psutil.Process] = {}
        self._directories: set[str] = set()
        self.dismissed = False

    def __repr__(self) -> str:
        return f"WardenWatch({len(self._processes)} processes, {len(self._directories)} directories)"

    def hear(self, line: bytes) -> None:
        """Take in one message. A torn one (the owner died while writing it) is nothing."""
        try:
            message = json.loads(line)
        except ValueError:
            return
        if "goodbye" in message:
            self.dismissed = True
        elif "forget" in message:
            self._processes.pop(message["forget"], None)
            self._directories.discard(message["forget"])
        elif "directory" in message:
            self._directories.add(message["directory"])
        else:
            # Looked up now, so that later steps of the wall clock cannot change the identity.
            process = find(message["pid"], message["creation_time"])
            if process is not None:
                self._processes[message["watch"]] = process

    def clean_up(self) -> list[str]:
        """End and remove everything; what was done, for the log."""
        done: list[str] = []
        deadline = time.monotonic() + CLEANUP_LIMIT_S
        quiet = 0
        # A process may be born while we look: two empty looks in a row are needed.
        while quiet < 2 and time.monotonic() < deadline:
            found = {process.pid: process for process in self._processes.values() if is_alive(process)}
            found |= {process.pid: process for process in marked(self._marker)}
            quiet = 0 if found else quiet + 1
            for process in found.values():
                if signal_quietly(process, signal.SIGKILL):
                    done.append(f"ended process {process.pid}")
                signal_quietly(process, signal.SIGCONT)
            time.sleep(0.05)  # the kernel signals no one but the parent when a process ends
        for path in sorted(self._directories):
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)
                done.append(f"removed directory {path}" if not os.path.exists(path) else f"could not remove {path}")
        return list(dict.fromkeys(done))


def main(marker: str, directory: str) -> None:
    """The warden's whole life. SIGINT, SIGTERM and SIGHUP are ignored: it goes when the owner has gone."""
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    watch = WardenWatch(marker)
    for line in sys.stdin.buffer:
        watch.hear(line)
    if watch.dismissed:
        return
    done = watch.clean_up()
    if os.path.isdir(directory):
        with open(open_log(os.path.join(directory, "warden.log")), "a", encoding="utf-8") as log:
            log.write("".join(f"{line}\n" for line in ["the owner was gone without a goodbye", *done]))
