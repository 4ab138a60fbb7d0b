"""Evidence as ``kiln check`` is given it: a bundle, a folder of bundles, or a tar archive of either.

An archive comes from elsewhere, so nothing in it is believed: only plain files and folders below the top are taken, of
bounded number and size, written by us under names that were checked. Links, devices and ``..`` are refused.
"""

from __future__ import annotations

import contextlib
import gzip
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, cast

from profiles.errors import ConfigError, LookError

MAX_BYTES = 2 * 2**30  # the evidence of 1,000 hosts is some 400 MB
MAX_FILE_BYTES = 256 * 2**20
MAX_MEMBERS = 200_000
MAX_DEPTH = 8
SUFFIXES = (".tar.gz", ".tgz", ".tar")
_CHUNK = 1 << 20


@contextlib.contextmanager
def opened(source: Path) -> Iterator[tuple[Path, ...]]:
    """The folders of the bundles in ``source``, in order. An archive's are gone again afterwards.

    Raises ConfigError where there is no bundle, LookError where an archive cannot be read or is refused.
    """
    if source.is_dir():
        yield bundles(source, source)
        return
    if not source.name.endswith(SUFFIXES):
        raise ConfigError(f"{source} is neither a folder nor an archive ({', '.join(SUFFIXES)})")
    with tempfile.TemporaryDirectory(prefix="kiln-evidence-") as folder:
        _unpack(source, Path(folder))
        yield bundles(Path(folder), source)


def bundles(directory: Path, named: Path) -> tuple[Path, ...]:
    """The folder itself where it is a bundle, else the bundles one or two levels below (an archive of a folder)."""
    if (directory / "manifest.json").exists():
        return (directory,)
    for pattern in ("*/manifest.json", "*/*/manifest.json"):
        found = tuple(sorted(path.parent for path in directory.glob(pattern)))
        if found:
            return found
    raise ConfigError(
        f"{named}: no evidence: neither manifest.json nor folders with one",
        remedy="`kiln validate --keep-evidence DIR` writes evidence",
    )


class _Bounded:
    """What is read of an archive, up to a limit: a few bytes can unpack to terabytes, in its headers too."""

    def __init__(self, archive: Path, content: IO[bytes]) -> None:
        self._archive = archive
        self._content = content
        self._left = MAX_BYTES + MAX_MEMBERS * 1024  # each member's header and padding

    def read(self, size: int = -1) -> bytes:
        data = self._content.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise LookError(f"{self._archive}: unpacks to more than {MAX_BYTES >> 20} MiB; that is no evidence")
        return data


def _bounded(archive: Path, content: IO[bytes]) -> IO[bytes]:
    """The content with its limit; a stream of tarfile only ever reads."""
    return cast("IO[bytes]", _Bounded(archive, content))


def _content(archive: Path) -> IO[bytes]:
    return archive.open("rb") if archive.name.endswith(".tar") else cast("IO[bytes]", gzip.open(archive, "rb"))


def _unpack(archive: Path, folder: Path) -> None:
    total = 0
    try:
        with _content(archive) as content, tarfile.open(fileobj=_bounded(archive, content), mode="r|") as tar:
            for number, member in enumerate(tar, start=1):
                if number > MAX_MEMBERS:
                    raise LookError(f"{archive}: more than {MAX_MEMBERS:,} members; that is no evidence")
                place = _place(archive, member, folder)
                total += member.size
                if member.size > MAX_FILE_BYTES or total > MAX_BYTES:
                    raise LookError(
                        f"{archive}: {member.name}: too large; at most {MAX_FILE_BYTES >> 20} MiB a file and "
                        f"{MAX_BYTES >> 20} MiB in all are read"
                    )
                if place is not None:
                    _copy(tar.extractfile(member), place, member)
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise LookError(f"{archive}: not an archive that can be read whole: {reason}") from error


def _place(archive: Path, member: tarfile.TarInfo, folder: Path) -> Path | None:
    """Where a member goes; None for a folder. Raises LookError for what must not be there."""
    path = PurePosixPath(member.name)
    parts = [part for part in path.parts if part != "."]
    if path.is_absolute() or ".." in parts or len(parts) > MAX_DEPTH or "\0" in member.name or "\\" in member.name:
        raise LookError(f"{archive}: {member.name!r} leaves the archive's folder; nothing of it was read")
    if member.isdir():
        return None
    if not member.isreg() or not parts:
        raise LookError(f"{archive}: {member.name!r} is a link or a device; evidence is plain files only")
    return folder.joinpath(*parts)


def _copy(content: IO[bytes] | None, place: Path, member: tarfile.TarInfo) -> None:
    if content is None:
        raise tarfile.TarError(f"{member.name}: no content")
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("xb") as file:  # twice the same name is an error: which of the two would be the evidence?
        shutil.copyfileobj(content, file, _CHUNK)
    if place.stat().st_size != member.size:
        raise tarfile.TarError(f"{member.name}: cut off")
