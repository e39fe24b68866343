"""The routes below ``/gapless/``: the page, its data (``/gapless/chaos``), and what is added to Locust's page.

Nothing here can end the load: if data cannot be read, the answer says so. Does not own the values that are shown
(``view``).
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
#: Added to the head of Locust's page, so that these scripts run before its own.
_JOINED = "".join(
    (
        f'<link rel="stylesheet" href=".{PREFIX}/locust.css">',
        f'<script src=".{PREFIX}/theme.js"></script>',
        f'<script src=".{PREFIX}/locust.js"></script>',
    )
)
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
#: These headers let the page load only its own files and data.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class Watched:
    """The run, as its conductor last described it in ``live.json``."""

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
    """Locust's page with the additional style and script in its head."""
    return page.replace("</head>", f"{_JOINED}</head>", 1)


def join(app: Flask, has_started: Callable[[], bool]) -> None:
    """Add to Locust's page. Until the load has started, show a waiting page: Locust's would offer to start one."""

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
