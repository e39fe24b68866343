"""The pages of ``gapless serve`` as a WSGI application. Owns the routes, and which headers an answer has.

It reads, and changes nothing: only GET and HEAD are answered. Pages run no script, and are escaped by their templates.

    /                       runs and sweeps; kind, verdict and text filter them, order and direction sort them
    /sweep/PLACE            the runs of a sweep's cells
    /compare?place=A&...    runs, or sweeps, side by side
    /files/PLACE            a file, or the contents of a directory
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs

from chaos.commands.serve import serve_pages
from chaos.commands.serve.choice import Choice
from chaos.commands.serve.listed import cells_of, entries_below
from chaos.commands.serve.served_files import SANDBOX, file_at, inside
from chaos.commands.serve.side_by_side import MOST_COMPARED, CannotCompare, compared
from cluster.seams.clock import Clock
from cluster.seams.units import seconds_of_ms

logger = logging.getLogger(__name__)

#: Keep pages of other origins from embedding these pages, or learning where a visitor came from.
_HEADERS = (
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)
_HTML = "text/html; charset=utf-8"
#: The longest query. Forms of these pages send less.
_MOST_QUERY = 64 * 1024


class PageAnswer(NamedTuple):
    """An answer. ``headers`` are in addition to those that every answer has."""

    status: HTTPStatus
    body: bytes
    content_type: str = _HTML
    headers: tuple[tuple[str, str], ...] = ()


class ServeApplication:
    """The pages of one results directory. ``clock`` decides which runs were written to lately."""

    def __init__(self, results: Path, clock: Clock) -> None:
        self._results = results
        self._clock = clock

    def __repr__(self) -> str:
        return f"<ServeApplication {self._results}>"

    def __call__(self, environ: Mapping[str, object], start_response: Callable[..., object]) -> Iterable[bytes]:
        method = str(environ.get("REQUEST_METHOD", "GET"))
        # WSGI has the decoded path as Latin-1
        path = str(environ.get("PATH_INFO", "/")).encode("latin-1", "replace").decode("utf-8", "surrogateescape")
        try:
            answer = self._answer(method, path, str(environ.get("QUERY_STRING", "")))
        except Exception:  # a bug in one page must not end the server: show an error page, and log it
            logger.exception("%s %s failed", method, path)
            answer = _refused(HTTPStatus.INTERNAL_SERVER_ERROR, "This page could not be rendered; see the log.")
        headers = [
            ("Content-Type", answer.content_type),
            ("Content-Length", str(len(answer.body))),
            *answer.headers,
            *_HEADERS,
        ]
        start_response(f"{answer.status.value} {answer.status.phrase}", headers)
        return [] if method == "HEAD" else [answer.body]

    def _answer(self, method: str, path: str, query: str) -> PageAnswer:
        if method not in ("GET", "HEAD"):
            return _refused(HTTPStatus.METHOD_NOT_ALLOWED, "Nothing can be changed here.", (("Allow", "GET, HEAD"),))
        if len(query) > _MOST_QUERY:
            return _refused(HTTPStatus.REQUEST_URI_TOO_LONG, "The query is too long.")
        asked = parse_qs(query, keep_blank_values=True, errors="replace")
        first, _, rest = path.removeprefix("/").partition("/")
        if path == "/":
            return self._list(asked)
        if path == "/compare":
            return self._compare(asked.get("place", []))
        if first == "sweep":
            return self._sweep(rest, asked)
        if first == "files":
            return self._file(rest)
        return _refused(HTTPStatus.NOT_FOUND, "This page does not exist.")

    @property
    def _now_s(self) -> float:
        return seconds_of_ms(self._clock.wall_ms())

    def _list(self, asked: Mapping[str, list[str]]) -> PageAnswer:
        entries = entries_below(self._results, self._now_s)
        return _page(serve_pages.listing("Runs and sweeps", "/", entries, Choice.of(asked)))

    def _sweep(self, place: str, asked: Mapping[str, list[str]]) -> PageAnswer:
        path = inside(self._results, place)
        if path is None or not (path / "sweep.json").is_file():
            return _refused(HTTPStatus.NOT_FOUND, "This sweep does not exist.")
        base = self._results.resolve()
        entries = cells_of(base, path, self._now_s)
        own = path.relative_to(base).as_posix()
        return _page(
            serve_pages.listing(
                f"Sweep {own}", f"/sweep/{serve_pages.quoted(own)}", entries, Choice.of(asked), parent=own
            )
        )

    def _compare(self, places: list[str]) -> PageAnswer:
        wanted = list(dict.fromkeys(places))
        if not 2 <= len(wanted) <= MOST_COMPARED:
            return _refused(
                HTTPStatus.BAD_REQUEST, f"Select two to {MOST_COMPARED} runs, or as many sweeps, to compare."
            )
        paths = [inside(self._results, place) for place in wanted]
        try:
            rows = compared([path for path in paths if path is not None]) if None not in paths else None
        except CannotCompare as error:
            return _refused(HTTPStatus.BAD_REQUEST, str(error))
        if rows is None:
            return _refused(HTTPStatus.NOT_FOUND, "One of these does not exist.")
        return _page(serve_pages.comparison(wanted, rows))

    def _file(self, place: str) -> PageAnswer:
        path = inside(self._results, place)
        if path is None:
            return _refused(HTTPStatus.NOT_FOUND, "This file does not exist.")
        if path.is_dir():
            own = path.relative_to(self._results.resolve()).as_posix()
            return _page(serve_pages.directory(own, sorted(path.iterdir())))
        try:
            found = file_at(path)
        except OSError as error:
            return _refused(HTTPStatus.FORBIDDEN, f"This file cannot be read: {error.strerror}.")
        if found is None:
            return _refused(HTTPStatus.FORBIDDEN, "This is not a regular file, or it is too large to show.")
        kept = () if found.is_shown else (("Content-Disposition", "attachment"),)
        policy = ("Content-Security-Policy", SANDBOX)
        return PageAnswer(HTTPStatus.OK, found.content, found.content_type, (policy, *kept))


def _page(text: str) -> PageAnswer:
    return PageAnswer(HTTPStatus.OK, text.encode("utf-8", "replace"))


def _refused(status: HTTPStatus, why: str, headers: tuple[tuple[str, str], ...] = ()) -> PageAnswer:
    return PageAnswer(status, serve_pages.refusal(status.phrase, why).encode(), headers=headers)
