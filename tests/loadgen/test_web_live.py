"""A real Locust with its web interface on, conducted: it starts by itself, shows the run, and nobody steers it."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from loadgen.command import locust_commands
from loadgen.settings import LoadSettings
from tests.loadgen.conftest import CHECKOUT, TOPIC, MockCluster
from tests.loadgen.test_live import eventually, wait_until
from tests.loadgen.test_web import STATE
from verifier.evidence.history import history_file, read_history
from verifier.evidence.run_directory import RunDirectory, read_json

pytestmark = pytest.mark.integration


class Web:
    """What a browser would ask."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._opener = build_opener(ProxyHandler({}))

    def ask(self, path: str, data: bytes | None = None, headers: Mapping[str, str] | None = None) -> tuple[int, str]:
        try:
            with self._opener.open(Request(self.url + path, data, dict(headers or {})), timeout=20) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.read().decode()


def test_a_conducted_load_is_seen_and_not_steered(cluster: MockCluster, tmp_path: Path) -> None:
    """It begins without a click; the page says what the run does, a broken state costs the page alone; whoever wants
    to stop or change the load from a browser is refused; SIGINT ends interface and load cleanly."""
    run = RunDirectory(tmp_path / "run").prepare()
    settings = LoadSettings(
        run_id=1, producers_bootstrap=cluster.bootstrap, topic=TOPIC, partitions=4, producers=2, readers=(), rate=200.0,
        flush_timeout_s=3.0,
    )  # fmt: skip
    (command,) = locust_commands(settings, run, web_port=0)
    with (tmp_path / "locust.log").open("w") as log:
        process = subprocess.Popen(
            command.argv, env=command.env, cwd=CHECKOUT, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        wait_until(run, "producers", "total_acked", 50)
        eventually(run.web_json.exists, "the address")
        web = Web(read_json(run.web_json)["url"])
        assert web.url.startswith("http://127.0.0.1:")
        status, index = web.ask("/")
        assert status == 200 and '"extended_tabs": [{"key": "chaos", "title": "Chaos"}]' in index
        assert '"state": "running"' in index and "./gapless/locust.js" in index
        assert json.loads(web.ask("/gapless/chaos")[1])["phase"] is None

        STATE.write(run.live_json)
        assert json.loads(web.ask("/gapless/chaos")[1])["active"][0]["fault"] == "cut-link"
        assert web.ask("/gapless/")[0] == 200
        run.live_json.write_text("{")
        assert json.loads(web.ask("/gapless/chaos")[1])["message"] == "Nothing is known about the run yet."

        for path, data in (("/stop", b""), ("/swarm", b"user_count=9&spawn_rate=9&host=elsewhere"), ("/user", b"{}")):
            assert json.loads(web.ask(path, data)[1])["success"] is False, path
        assert web.ask("/stats/reset", b"")[1] != "ok"
        before = read_json(run.status_json("producers"))["total_acked"]
        wait_until(run, "producers", "total_acked", before + 100)
        assert json.loads(web.ask("/stats/requests")[1])["user_count"] == 2
        # Another page of the browser, whose name points here or not, reads nothing.
        assert web.ask("/stats/requests", headers={"Host": "rebound.example.org"})[0] == 403
        assert web.ask("/gapless/chaos", headers={"Host": "localhost:1"})[0] == 200
        request = Request(web.url + "/stats/requests", headers={"Origin": "http://example.org"})
        with build_opener(ProxyHandler({})).open(request, timeout=20) as answer:
            assert [name for name in answer.headers if name.lower().startswith("access-control")] == []

        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0, (tmp_path / "locust.log").read_text()
    finally:
        process.kill()
        process.wait()
    assert history_file(read_history(run.history("producers"))).closed
    assert (run.loadgen_dir / "producers.html").stat().st_size > 0
    assert "Traceback" not in (tmp_path / "locust.log").read_text()
