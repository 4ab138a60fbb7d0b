"""Evidence as ``kiln check`` is given it: a bundle, a folder of bundles, or a tar archive of either.

An archive comes from elsewhere, so nothing in it is believed: only plain files and folders below the top are taken, of
bounded number and size, written by us under names that were checked. Links, devices and ``..`` are refused.
"""

from __future__ import annotations

import contextlib
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

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


def _unpack(archive: Path, folder: Path) -> None:
    total = 0
    try:
        with tarfile.open(archive, mode="r:*") as tar:
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
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
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
