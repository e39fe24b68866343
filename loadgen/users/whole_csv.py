"""Locust's CSV files with the last second in them. Owns that alone.

Locust writes them once a second and then only closes them: what came after the last of these moments would be in its
HTML, its JSON and the histories, and not there.
"""

from __future__ import annotations

from locust import stats


class WholeCsvFileWriter(stats.StatsCSVFileWriter):  # type: ignore[misc]
    """Writes the requests once more before its files are closed."""

    def close_files(self) -> None:
        file, writer = self.requests_csv_filehandle, self.requests_csv_writer
        file.seek(0)
        writer.writerow(self.requests_csv_columns)
        self._requests_data_rows(writer)
        file.truncate()
        super().close_files()


def write_whole_csv() -> None:
    """From now on Locust makes its CSV files by this one."""
    stats.StatsCSVFileWriter = WholeCsvFileWriter
