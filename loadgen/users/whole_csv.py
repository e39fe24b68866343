"""Makes Locust's CSV of requests include the last second. Owns only that.

Locust writes the file once a second, and only closes it at the end. Requests after the last write would be in its HTML,
its JSON and the histories, but not in this file.
"""

from __future__ import annotations

import csv
import io
from typing import Any

from locust import stats

_made: list[WholeCsvFileWriter] = []


class WholeCsvFileWriter(stats.StatsCSVFileWriter):  # type: ignore[misc]
    """Writes the requests as they were at the end of the load, because Locust clears them when it writes its JSON."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._whole = ""
        _made.append(self)

    def keep(self) -> None:
        """Keep the requests, at the end of the load."""
        rows = io.StringIO(newline="")
        writer = csv.writer(rows)
        writer.writerow(self.requests_csv_columns)
        self._requests_data_rows(writer)
        self._whole = rows.getvalue()

    def close_files(self) -> None:
        """Write the kept requests and close the files. Locust calls this at the very end."""
        if self._whole:
            self.requests_csv_filehandle.seek(0)
            self.requests_csv_filehandle.write(self._whole)
            self.requests_csv_filehandle.truncate()
        super().close_files()


def write_whole_csv() -> None:
    """Make Locust use this class for its CSV files."""
    stats.StatsCSVFileWriter = WholeCsvFileWriter


def keep_requests() -> None:
    """Keep the requests of this process, after all were counted."""
    for writer in _made:
        writer.keep()
