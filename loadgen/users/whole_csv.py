"""Locust's CSV of requests with the last second in it. Owns that alone.

Locust writes it once a second and then only closes it: what came after the last of these moments would be in its HTML,
its JSON and the histories, and not there.
"""

from __future__ import annotations

import csv
import io
from typing import Any

from locust import stats

_made: list[WholeCsvFileWriter] = []


class WholeCsvFileWriter(stats.StatsCSVFileWriter):  # type: ignore[misc]
    """Leaves the requests as they stood when the load had ended: Locust clears them when it writes its JSON."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._whole = ""
        _made.append(self)

    def keep(self) -> None:
        """The load has ended: these are the requests."""
        rows = io.StringIO(newline="")
        writer = csv.writer(rows)
        writer.writerow(self.requests_csv_columns)
        self._requests_data_rows(writer)
        self._whole = rows.getvalue()

    def close_files(self) -> None:
        """Called by Locust as its last act."""
        if self._whole:
            self.requests_csv_filehandle.seek(0)
            self.requests_csv_filehandle.write(self._whole)
            self.requests_csv_filehandle.truncate()
        super().close_files()


def write_whole_csv() -> None:
    """From now on Locust makes its CSV files by this one."""
    stats.StatsCSVFileWriter = WholeCsvFileWriter


def keep_requests() -> None:
    """All requests of this process are counted."""
    for writer in _made:
        writer.keep()
