"""A text from a file or from stdin, as a command's argument names it."""

from __future__ import annotations

import sys
from pathlib import Path

from profiles.errors import ConfigError

LIMIT_BYTES = 256 * 1024 * 1024  # a kernel log of a month is 50 MB; anything beyond this is a mistake


def read_text(name: str) -> str:
    """The text of the file, or of stdin for ``-``; bytes that are not UTF-8 become U+FFFD.

    UTF-16 with a byte order mark, as PowerShell's ``>`` writes, is read too. Raises ConfigError where there is no such
    file, or it cannot be read, or it is larger than 256 MiB.
    """
    try:
        if name == "-":
            data = sys.stdin.buffer.read(LIMIT_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(LIMIT_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{name}: cannot be read: {error.strerror}") from error
    if len(data) > LIMIT_BYTES:
        raise ConfigError(f"{name}: larger than {LIMIT_BYTES // 2**20} MiB", remedy="cut out the part that matters")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")
