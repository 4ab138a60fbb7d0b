from __future__ import annotations

from pathlib import Path

import pytest

from kiln import textfile
from profiles.errors import ConfigError


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"abc\n", "abc\n"),
        ("\ufeffabc".encode(), "abc"),
        ("abc".encode("utf-16"), "abc"),
        (b"a\xff", "a\ufffd"),
        (b"", ""),
    ],
)
def test_a_text_is_read_in_the_encodings_that_shells_write(tmp_path: Path, data: bytes, text: str) -> None:
    (tmp_path / "x").write_bytes(data)
    assert textfile.read_text(str(tmp_path / "x")) == text


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing: cannot be read: No such file"):
        textfile.read_text(str(tmp_path / "nothing"))


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Is a directory"):
        textfile.read_text(str(tmp_path))


def test_a_file_beyond_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(textfile, "LIMIT_BYTES", 3)
    (tmp_path / "x").write_text("abcd")
    with pytest.raises(ConfigError, match="larger than"):
        textfile.read_text(str(tmp_path / "x"))
