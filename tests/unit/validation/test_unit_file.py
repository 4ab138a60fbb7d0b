"""The file of bad units: whole or not at all, one writer at a time, and where it lies."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from profiles.errors import LookError
from validation import unit_file
from validation.unit_file import UnitFile, default_path, of_setting
from validation.units import BadUnit
from validation.verdict import FaultClass


def bad(number: int) -> BadUnit:
    uuid = f"GPU-b8d61a3c-8f0b-2f52-8a15-5a53b3d9b{number:03x}"
    return BadUnit(
        uuid, "1", "NVIDIA L4", "h", "i", "gpu.lost", "lost", f"2026-11-{number + 1:02d}", FaultClass.REPLACE_NOW
    )


def test_no_file_is_an_empty_memory(tmp_path: Path) -> None:
    assert UnitFile(tmp_path / "units.json").read() == ()


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    file = UnitFile(tmp_path / "deep" / "units.json")

    def add(number: int) -> None:
        file.change(lambda now: (*now, bad(number)))

    threads = [threading.Thread(target=add, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {unit.uuid for unit in file.read()} == {bad(number).uuid for number in range(12)}
    assert {path.name for path in file.path.parent.iterdir()} == {"units.json", ".units.json.lock"}


def test_a_memory_keeps_the_mode_that_its_users_gave_it(tmp_path: Path) -> None:
    file = UnitFile(tmp_path / "units.json")
    file.change(lambda now: (*now, bad(1)))
    assert file.path.stat().st_mode & 0o777 == 0o644
    file.path.chmod(0o664)
    file.change(lambda now: (*now, bad(2)))
    assert file.path.stat().st_mode & 0o777 == 0o664


def test_nothing_is_written_where_nothing_changes(tmp_path: Path) -> None:
    file = UnitFile(tmp_path / "units.json")
    file.change(lambda now: tuple(now))
    assert not file.path.exists()


def test_a_broken_file_is_never_overwritten(tmp_path: Path) -> None:
    file = UnitFile(tmp_path / "units.json")
    file.path.write_text('{"schema"')
    with pytest.raises(LookError, match=r"units\.json"):
        file.change(lambda now: (*now, bad(1)))
    assert file.path.read_text() == '{"schema"'


def test_a_folder_in_its_place_cannot_be_looked_at(tmp_path: Path) -> None:
    (tmp_path / "units.json").mkdir()
    with pytest.raises(LookError, match="cannot be read"):
        UnitFile(tmp_path / "units.json").read()


def test_whoever_holds_the_lock_too_long_is_named_and_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unit_file, "LOCK_S", 0.1)
    file = UnitFile(tmp_path / "units.json")

    def untouched(_: Sequence[BadUnit]) -> tuple[BadUnit, ...]:
        raise AssertionError("changed without the lock")

    with (tmp_path / ".units.json.lock").open("a") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(LookError, match="held by another process"):
            file.change(untouched)


def test_where_the_memory_of_a_stack_lies(tmp_path: Path) -> None:
    state = {"XDG_STATE_HOME": str(tmp_path)}
    own = UnitFile(tmp_path / "kiln" / "bad-units.json")
    assert of_setting("none", state) is None
    assert of_setting("/x/y.json", state) == UnitFile(Path("/x/y.json"))
    assert of_setting("", {**state, "PULUMI_BACKEND_URL": "file:///srv/state"}) == UnitFile(
        Path("/srv/state/.kiln/bad-units.json")
    )
    assert of_setting("", {**state, "PULUMI_BACKEND_URL": "s3://bucket"}) == own
    assert of_setting("", state) == own
    beside = of_setting("", {"PULUMI_BACKEND_URL": "file://~"})
    assert beside == UnitFile(Path.home() / ".kiln" / "bad-units.json")
    assert default_path({}) == Path.home() / ".local" / "state" / "kiln" / "bad-units.json"
