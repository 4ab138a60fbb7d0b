"""Evidence from an archive: read where it is good, refused with its reason where it is not, and gone afterwards."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from kiln import evidence_source
from kiln.evidence_source import opened
from profiles.errors import ConfigError, LookError
from validation.evidence import Bundle, Item, Outcome


def bundle(folder: Path, host: str = "gpu-1") -> Bundle:
    made = Bundle(host, {"nvml": Item("nvml", "NVML", Outcome.OK, stdout="{}\r\n")})
    made.write(folder)
    return made


def archive(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for info, data in members:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def file(name: str, **attributes: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    for key, value in attributes.items():
        setattr(info, key, value)
    return info


@pytest.mark.parametrize("arcname", [".", "evidence", "evidence/rack"])
@pytest.mark.parametrize("suffix", ["tar.gz", "tgz", "tar"])
def test_an_archive_of_bundles_is_read_as_the_folder_is(tmp_path: Path, arcname: str, suffix: str) -> None:
    one, two = bundle(tmp_path / "in" / "a", "a"), bundle(tmp_path / "in" / "b", "b")
    path = tmp_path / f"evidence.{suffix}"
    with tarfile.open(path, "w" if suffix == "tar" else "w:gz") as tar:
        tar.add(tmp_path / "in", arcname=arcname)
    if arcname == "evidence/rack":
        with pytest.raises(ConfigError, match="no evidence"), opened(path):
            pass
        return
    with opened(path) as folders:
        assert [Bundle.read(folder) for folder in folders] == [one, two]
    assert not any(folder.exists() for folder in folders)


def test_an_archive_of_one_bundle_itself(tmp_path: Path) -> None:
    made = bundle(tmp_path / "in")
    with tarfile.open(tmp_path / "one.tgz", "w:gz") as tar:
        tar.add(tmp_path / "in", arcname="./")
    with opened(tmp_path / "one.tgz") as folders:
        assert [Bundle.read(folder) for folder in folders] == [made]


@pytest.mark.parametrize(
    ("member", "words"),
    [
        (file("../manifest.json"), "leaves the archive's folder"),
        (file("a/../../manifest.json"), "leaves the archive's folder"),
        (file("/etc/manifest.json"), "leaves the archive's folder"),
        (file("a\\..\\manifest.json"), "leaves the archive's folder"),
        (file("a/b/c/d/e/f/g/h/i.txt"), "leaves the archive's folder"),
        (file("items", type=tarfile.SYMTYPE, linkname="/etc"), "a link or a device"),
        (file("items/x.txt", type=tarfile.LNKTYPE, linkname="manifest.json"), "a link or a device"),
        (file("items/x.txt", type=tarfile.FIFOTYPE), "a link or a device"),
        (file("items/x.txt", type=tarfile.CHRTYPE), "a link or a device"),
    ],
)
def test_a_hostile_member_is_refused_and_writes_nothing(tmp_path: Path, member: tarfile.TarInfo, words: str) -> None:
    path = archive(tmp_path / "evidence.tar.gz", (member, b""))
    with pytest.raises(LookError, match=words), opened(path):
        pass
    assert [entry.name for entry in tmp_path.iterdir()] == ["evidence.tar.gz"]


@pytest.mark.parametrize(
    ("limit", "value", "words"),
    [("MAX_BYTES", 15, "too large"), ("MAX_FILE_BYTES", 9, "too large"), ("MAX_MEMBERS", 1, "more than 1 members")],
)
def test_an_archive_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, words: str
) -> None:
    monkeypatch.setattr(evidence_source, limit, value)
    path = archive(tmp_path / "evidence.tar.gz", (file("a"), b"0123456789"), (file("b"), b"0123456789"))
    with pytest.raises(LookError, match=words), opened(path):
        pass


def test_headers_that_unpack_without_end_are_refused_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence_source, "MAX_BYTES", 1 << 16)
    monkeypatch.setattr(evidence_source, "MAX_MEMBERS", 1)
    path = tmp_path / "evidence.tar.gz"
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(file("a", pax_headers={"comment": "x" * (1 << 20)}))
    with pytest.raises(LookError, match="unpacks to more than"), opened(path):
        pass


def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    path = archive(tmp_path / "evidence.tar.gz", (file("manifest.json"), b"{}"), (file("manifest.json"), b"[]"))
    with pytest.raises(LookError, match="can be read whole"), opened(path):
        pass


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


@pytest.mark.parametrize("spoil", [cut, lambda _: b"", lambda _: b"no archive", lambda data: data[:40] + data[60:]])
def test_a_spoilt_archive_could_not_be_looked_at(tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    bundle(tmp_path / "in")
    path = tmp_path / "evidence.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(tmp_path / "in", arcname="in")
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(LookError, match=r"evidence\.tar\.gz"), opened(path):
        pass


def test_what_is_neither_folder_nor_archive_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "smi.txt").write_text("NVIDIA-SMI")
    with pytest.raises(ConfigError, match="neither a folder nor an archive"), opened(tmp_path / "smi.txt"):
        pass
