"""The routes under ``/gapless/``: the page, its data (``/gapless/chaos``), what is put into Locust's page. Owns them.

Nothing here can end the load: what cannot be read is an answer that says so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from flask import Blueprint, Flask, Response, request, send_from_directory

from cluster.seams.clock import Clock
from loadgen.web import view
from verifier.evidence.live import LiveState

logger = logging.getLogger(__name__)

PREFIX = "/gapless"
INDEX = "/"
_HERE = Path(__file__).parent
_FILES = {"": "chaos.html"} | {name: name for name in ("chaos.css", "chaos.js", "theme.js", "locust.css", "locust.js")}
#: Into the head of Locust's page; the scripts run before its own.
_JOINED = "".join(
    (
        f'<link rel="stylesheet" href=".{PREFIX}/locust.css">',
        f'<script src=".{PREFIX}/theme.js"></script>',
        f'<script src=".{PREFIX}/locust.js"></script>',
    )
)
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
#: The page needs its own files and data, and nothing else in the world.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class Watched:
    """The run as its conductor last wrote it down."""

    def __init__(self, live_json: Path, clock: Clock) -> None:
        self._path = live_json
        self._clock = clock

    def page(self) -> dict[str, Any]:
        """See ``view.page``; only ``phase`` None and ``message`` if there is nothing to show."""
        state = self._state()
        if state is None:
            return {"phase": None, "message": view.NOTHING_YET}
        return view.page(state, self._clock.monotonic_ns())

    def _state(self) -> LiveState | None:
        try:
            return LiveState.read(self._path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            logger.debug("the state of the run cannot be read: %s", error)
            return None


def blueprint(watched: Watched) -> Blueprint:
    """All routes."""
    routes = Blueprint("gapless", __name__, url_prefix=PREFIX)
    for route, file in _FILES.items():
        routes.add_url_rule(f"/{route}", endpoint=file.replace(".", "-"), view_func=partial(_serve, file))

    @routes.get("/chaos")
    def chaos() -> dict[str, Any]:
        return watched.page()

    @routes.after_request
    def guarded(response: Response) -> Response:
        response.headers.update(_HEADERS)
        return response

    return routes


def joined(page: str) -> str:
    """Locust's page with our style and script in its head."""
    return page.replace("</head>", f"{_JOINED}</head>", 1)


def join(app: Flask, has_started: Callable[[], bool]) -> None:
    """Put ours into Locust's page, and a page that waits in its place until the load has started: it would offer to."""

    @app.before_request
    def wait() -> Response | None:
        if request.path != INDEX or has_started():
            return None
        response = _serve("waiting.html")
        response.status_code = 503
        return response

    @app.after_request
    def put(response: Response) -> Response:
        if request.path == INDEX and response.status_code == 200:
            response.set_data(joined(response.get_data(as_text=True)))
        return response


def _serve(file: str) -> Response:
    return send_from_directory(_HERE, file, mimetype=_TYPES[Path(file).suffix])
