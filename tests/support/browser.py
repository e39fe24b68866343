"""A real browser without a window, driven by its DevTools protocol over two pipes. Owns the protocol and the process.

No driver, no port: Chromium reads commands from its file descriptor 3 and writes answers to 4, each ended by a zero.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cluster.seams.clock import SystemClock
from tests.support.require import require

#: Puts two inherited descriptors where Chromium looks for them, then becomes Chromium.
_PLACE = "import os,sys; i,o=map(int,sys.argv[1:3]); os.dup2(i,3); os.dup2(o,4); os.execv(sys.argv[3],sys.argv[3:])"
_QUIET = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
          "--disable-background-networking", "--disable-component-update", "--disable-sync")  # fmt: skip
#: Also what it waits for in a page.
ANSWER_S = 120.0


class Browser:
    """One Chromium with a profile of its own. Skips the test where there is none."""

    def __init__(self, directory: Path) -> None:
        chromium = require("chromium")
        directory.mkdir(parents=True, exist_ok=True)
        self._clock = SystemClock()
        self._numbers = itertools.count(1)
        self._unread = b""
        self.pages: dict[str, Page] = {}
        commands, self._out = os.pipe()
        self._in, answers = os.pipe()
        with (directory / "chromium.log").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PLACE, str(commands), str(answers), chromium, *_QUIET,
                 "--remote-debugging-pipe", f"--user-data-dir={directory / 'profile'}", "about:blank"],
                pass_fds=(commands, answers), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        os.close(commands)
        os.close(answers)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.call("Browser.close")
        except (OSError, AssertionError):
            self._process.kill()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def open(self, url: str) -> Page:
        """A page of its own; what it asks of the network and says on its console is noted from the beginning."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self.pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call("Page.navigate", url=url)
        return page

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """One command and its result; events that come meanwhile go to their pages."""
        number = next(self._numbers)
        command = {"id": number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        os.write(self._out, json.dumps(command).encode() + b"\0")
        deadline_ms = self._clock.monotonic_ms() + int(ANSWER_S * 1000)
        while True:
            message = self._message(deadline_ms)
            if message.get("id") == number:
                assert "error" not in message, f"{method}: {message['error']}"
                result: dict[str, Any] = message["result"]
                return result
            if (page := self.pages.get(message.get("sessionId", ""))) is not None and "method" in message:
                page.note(message["method"], message["params"])

    def _message(self, deadline_ms: int) -> dict[str, Any]:
        while b"\0" not in self._unread:
            left_s = (deadline_ms - self._clock.monotonic_ms()) / 1000
            ready, _, _ = select.select([self._in], [], [], max(0.0, left_s))
            assert ready, f"the browser did not answer within {ANSWER_S} s"
            chunk = os.read(self._in, 1 << 20)
            assert chunk, "the browser has ended"
            self._unread += chunk
        line, _, self._unread = self._unread.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message


class Page:
    """One page: what it shows, what it asked for (``urls``), what it complained of (``complaints``)."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        self.urls: list[str] = []
        self.complaints: list[str] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def ask(self, expression: str) -> Any:
        """The value of an expression in the page; fails if it throws."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, expression: str, timeout_s: float) -> bool:
        """Wait in the page until an expression is true; whether it was within the time."""
        promise = f"""new Promise((tell) => {{
          const look = setInterval(() => {{ if ({expression}) end(true); }}, 100);
          const late = setTimeout(() => end(false), {timeout_s * 1000});
          const end = (seen) => {{ clearInterval(look); clearTimeout(late); tell(seen); }};
        }})"""
        answer = self.call("Runtime.evaluate", expression=promise, awaitPromise=True, returnByValue=True)
        return bool(answer["result"].get("value"))

    def text(self) -> str:
        """All that stands there."""
        return str(self.ask("document.body ? document.body.innerText : ''"))

    def dark(self, dark: bool) -> None:
        """Prefer one of the color schemes, as the system's settings would."""
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def picture(self, width: int = 1280, height: int = 900) -> bytes:
        """The page as a PNG."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def note(self, method: str, parameters: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.urls.append(parameters["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(parameters["exceptionDetails"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.complaints.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
        elif method == "Runtime.consoleAPICalled" and parameters["type"] == "error":
            self.complaints.append(str(parameters["args"]))
