"""What a cluster's refusal looks like to a program. Owns the exceptions; the codes are the protocol's."""

from __future__ import annotations

from cluster.protocol.errors import ErrorCode


class AdminError(Exception):
    """The cluster said no, finally. ``error_code`` says why."""

    def __init__(self, error_code: ErrorCode, message: str) -> None:
        super().__init__(f"{error_code.name}: {message}")
        self.error_code = error_code


class UnsupportedVersion(AdminError):
    """The broker and we have no version of an API in common."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNSUPPORTED_VERSION, message)
