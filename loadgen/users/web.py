"""Locust's web interface in a conducted run: the Chaos tab, faults on its charts, and who may touch the load.

Owns the joining to Locust, by what Locust offers for it: its Flask application and ``template_args``. Does not own what
is shown (``loadgen.web``). Errors here are logged and may cost the tab, never the load.
"""

from __future__ import annotations

import logging
from typing import Any

import gevent
from flask import request
from locust.runners import STATE_INIT

from cluster.hosts import GuardedWsgi
from cluster.seams.clock import SystemClock
from loadgen.web import view
from loadgen.web.pages import Watched, blueprint, join
from verifier.evidence.run_directory import RunDirectory, write_json_atomic

logger = logging.getLogger(__name__)

LOOKING = ("GET", "HEAD", "OPTIONS")
REFUSAL = "gapless run starts and ends this load; Ctrl-C in its terminal ends it early"
#: The time between two checks whether Locust's web server has started, which it does not signal.
POLL_S = 0.05


def show_chaos(environment: Any, run: RunDirectory) -> None:
    """Add the tab and the marks to the web interface that is about to start, and report its address once the load
    runs."""
    try:
        watched = Watched(run.live_json, SystemClock())
        environment.web_ui.template_args["extended_tabs"] = [view.TAB]
        environment.web_ui.app.register_blueprint(blueprint(watched))
        join(environment.web_ui.app, lambda: bool(environment.runner.state != STATE_INIT))
    except Exception:
        logger.exception("the Chaos tab cannot be shown; the load continues")
    environment.web_ui.app.before_request(_only_look)
    # Locust lets pages of any origin read its answers. This wraps everything else, so that nothing can allow that
    # again.
    environment.web_ui.app.wsgi_app = GuardedWsgi(environment.web_ui.app.wsgi_app)
    gevent.spawn(_tell_address, environment, run)


def _only_look() -> dict[str, Any] | None:
    """Refuse requests that would start, stop or change the load. None lets a request pass."""
    if request.method in LOOKING:
        return None
    # the form of Locust's own refusals, whose message its pages show
    return {"success": False, "message": REFUSAL}


def _tell_address(environment: Any, run: RunDirectory) -> None:
    """Write ``web.json`` once the interface listens and the load has begun. Before, the page offers to start one."""
    web_ui = environment.web_ui
    while web_ui.server is None or not web_ui.server.started or environment.runner.state == STATE_INIT:
        gevent.sleep(POLL_S)
    try:
        write_json_atomic(run.web_json, {"url": f"http://{web_ui.host}:{web_ui.server.server_port}"})
    except OSError as error:
        logger.error("the address of the web interface cannot be written: %s", error)
