"""Building the stub libraries: cached by content, and clear where it cannot be done."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from profiles.errors import KilnError
from sandbox.native import build


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    build.libraries.cache_clear()
    yield
    build.libraries.cache_clear()


def test_every_library_is_built_without_a_warning_and_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "FLAGS", (*build.FLAGS, "-Werror"))
    first = build.libraries()
    stamps = {name: path.stat().st_mtime_ns for name, path in first.items()}
    build.libraries.cache_clear()
    again = build.libraries()
    assert set(first) == set(build.LIBRARIES)
    assert all(path.is_relative_to(tmp_path / "kiln" / "native") for path in first.values())
    assert {name: path.stat().st_mtime_ns for name, path in again.items()} == stamps


def test_no_compiler_is_one_clear_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(KilnError, match="no C compiler") as caught:
        build.libraries()
    assert "apt-get install gcc" in caught.value.remedy


def test_a_source_that_does_not_compile_is_quoted(tmp_path: Path) -> None:
    source = tmp_path / "broken.c"
    source.write_text("int broken(void) { return missing; }\n")
    with pytest.raises(KilnError, match=r"(?s)libbroken\.so does not compile: .*missing"):
        build.compile_library("libbroken.so", [source], tmp_path / "libbroken.so")
    assert not (tmp_path / "libbroken.so").exists()
