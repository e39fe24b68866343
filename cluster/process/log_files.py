"""Opens the logs of processes, in directories that may have come from elsewhere. Owns the refusal; knows no log."""

from __future__ import annotations

import errno
import os
import stat


def open_log(path: str) -> int:
    """A descriptor that appends to this file; the file and its directory are made if absent. Raises ``OSError``.

    Also for a symbolic link and for what is no file, with a line that says so: anyone who made a link would choose the
    file that grows, and a pipe without a reader would be waited for.
    """
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        log = os.open(path, flags, 0o644)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO):
            raise
        what = "a symbolic link" if error.errno == errno.ELOOP else "not a file"
        raise OSError(f"{path} is {what}, and a log is written to a file alone: remove it") from error
    if path != os.devnull and not stat.S_ISREG(os.fstat(log).st_mode):
        os.close(log)
        raise OSError(f"{path} is not a file, and a log is written to a file alone: remove it")
    return log
