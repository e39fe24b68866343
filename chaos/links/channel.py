"""Sends HTTP requests to one proxy server, with a hard timeout and a typed error for every non-2xx answer.

Ignores proxy settings in the environment. Each call has its own session: calls may come from several threads, and no
connection stays open between them. Does not own the API (``chaos.links.links``).
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import requests
from urllib3.util import Timeout

from chaos.links.errors import LinkError, LinkTimeout, LinkUnreachable, error_for
from cluster.seams.clock import SystemClock
from cluster.seams.units import ms_of_seconds

_READ_BYTES = 64 * 1024
_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True)
class Answer:
    """A 2xx answer, with the attributes of a ``requests.Response`` that toxiproxy-python uses."""

    status_code: int
    content: bytes

    def json(self) -> Any:
        try:
            return json.loads(self.content)
        except RecursionError:
            raise ValueError("the answer is nested too deeply") from None


@dataclass(frozen=True, slots=True)
class Channel:
    """One server. :meth:`parse` raises ``ValueError`` for any URL but ``http://HOST:PORT``."""

    host: str
    port: int
    timeout_s: float

    @classmethod
    def parse(cls, url: str, timeout_s: float) -> Channel:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        if parts.scheme != "http" or not parts.hostname or parts.path.strip("/"):
            raise ValueError(f"not the address of a Toxiproxy server: {url!r}; give http://HOST:PORT")
        return cls(parts.hostname, parts.port or 8474, timeout_s)

    def request(self, method: str, path: str, body: object = None) -> Answer:
        """Send a request, with ``body`` as JSON. Raises a LinkError unless a 2xx answer ends within ``timeout_s``."""
        what = f"{method} {path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        deadline_ms = _CLOCK.monotonic_ms() + int(ms_of_seconds(self.timeout_s))
        try:
            with requests.Session() as session:
                session.trust_env = False
                with session.request(
                    method,
                    f"http://{host}:{self.port}{path}",
                    json=body,
                    # requests accepts urllib3's Timeout, which limits connecting and waiting together
                    timeout=Timeout(total=self.timeout_s),  # type: ignore[arg-type]
                    allow_redirects=False,
                    stream=True,
                ) as response:
                    content = self._read(response, deadline_ms, what)
                    status = response.status_code
        except requests.Timeout as error:
            raise LinkTimeout(f"{what}: no answer within {self.timeout_s:g} s: {error}") from error
        except requests.RequestException as error:
            raise LinkUnreachable(f"{what}: {error}") from error
        if not 200 <= status < 300:
            raise _error(what, status, content)
        return Answer(status, content)

    def _read(self, response: requests.Response, deadline_ms: int, what: str) -> bytes:
        content = bytearray()
        for part in response.iter_content(_READ_BYTES):
            content += part
            if _CLOCK.monotonic_ms() > deadline_ms:
                raise LinkTimeout(f"{what}: the answer did not end within {self.timeout_s:g} s")
        return bytes(content)


def _error(what: str, status: int, content: bytes) -> LinkError:
    text = content.decode("utf-8", "replace").strip()
    with suppress(
        ValueError, TypeError, KeyError, RecursionError
    ):  # not Toxiproxy's JSON: use the body itself as the message
        text = json.loads(text)["error"]
    return error_for(status, f"{what}: {status} {text}")
