from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kiln.__main__ import main
from validation.unit_file import UnitFile, default_path
from validation.units import BadUnit
from validation.verdict import FaultClass

UUID = "GPU-b8d61a3c-8f0b-2f52-8a15-5a53b3d9b6d1"
UNIT = BadUnit(
    UUID, "1650", "NVIDIA L4", "gpu-1", "i-1", "gpu.lost", "lost\x1b[31m", "2026-11-30", FaultClass.REPLACE_NOW
)


@pytest.fixture
def memory() -> UnitFile:
    file = UnitFile(default_path(os.environ))
    file.change(lambda _: (UNIT,))
    return file


def test_no_unit_is_known_at_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["units", "list"]) == 0
    assert capsys.readouterr().out == "no unit is known to be bad\n"


@pytest.mark.usefixtures("memory")
def test_a_unit_is_listed_with_place_and_reason_and_without_escape_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["units", "list"]) == 0
    text = capsys.readouterr().out
    assert f"bad     {UUID}  serial 1650  2026-11-30  gpu-1  gpu.lost: lost" in text
    assert "\x1b" not in text


@pytest.mark.usefixtures("memory")
def test_json_is_the_file_s_own_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["units", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "kiln/bad-units/v1"


def test_a_repaired_unit_is_forgotten(memory: UnitFile, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["units", "forget", UUID.lower()]) == 0
    assert memory.read() == ()
    assert UUID in capsys.readouterr().out


def test_forgetting_what_is_not_known_is_an_error(memory: UnitFile, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["units", "forget", "GPU-1"]) == 2
    assert str(memory.path) in capsys.readouterr().err
    assert memory.read() == (UNIT,)


def test_a_file_that_cannot_be_read_is_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "units.json").write_text("[]")
    assert main(["units", "list", "--bad-units", str(tmp_path / "units.json")]) == 3
    assert "units.json" in capsys.readouterr().err
