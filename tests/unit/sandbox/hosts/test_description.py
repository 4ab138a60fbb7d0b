"""Machine descriptions: all of them load, and a wrong one says where it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles import catalog
from profiles.errors import ConfigError, ProfileError
from sandbox.hosts import description

FIRST_TYPES = {
    "p5.48xlarge",
    "p4d.24xlarge",
    "g5.xlarge",
    "g5.48xlarge",
    "g6.xlarge",
    "g6e.xlarge",
    "g4dn.xlarge",
    "p3.16xlarge",
}


def test_the_first_eight_types_are_described() -> None:
    assert set(description.types()) >= FIRST_TYPES


@pytest.mark.parametrize("instance_type", description.types())
def test_a_machine_and_its_board_load_and_agree_with_the_catalogue(instance_type: str) -> None:
    machine = description.machine(instance_type)
    board = description.board(machine.board)
    profile = catalog.load(instance_type)
    assert profile is not None
    assert machine.instance_type == instance_type
    assert len(machine.gpus.addresses) == profile.gpu.count.value
    assert machine.board == profile.gpu.board
    assert board.name in profile.gpu.names.value
    assert len(machine.efa.addresses if machine.efa else ()) == profile.network.efa_max.value
    disks = machine.instance_store.count if machine.instance_store else 0
    assert profile.storage.instance_store_count is not None
    assert disks == profile.storage.instance_store_count.value


@pytest.mark.parametrize("instance_type", description.types())
def test_addresses_on_the_bus_are_unique(instance_type: str) -> None:
    machine = description.machine(instance_type)
    addresses = list(machine.gpus.addresses)
    for group in (machine.switches, machine.efa):
        addresses += group.addresses if group else ()
    assert len(addresses) == len(set(addresses))


@pytest.mark.parametrize("instance_type", description.types())
def test_the_links_of_each_gpu_add_up_to_those_of_its_board(instance_type: str) -> None:
    machine = description.machine(instance_type)
    board = description.board(machine.board)
    if board.nvlink is None or isinstance(machine.pairs, str):
        expected = f"NV{board.nvlink.count}" if board.nvlink else "PHB"
        assert machine.pairs == expected
        return
    for row in machine.pairs:
        assert sum(int(cell[2:]) for cell in row if cell.startswith("NV")) == board.nvlink.count


def test_an_unknown_type_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"cannot simulate instance type 'p99\.huge'") as caught:
        description.machine("p99.huge")
    assert "p5.48xlarge" in caught.value.remedy


def test_a_wrong_file_names_itself_and_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "p9.xlarge.yaml").write_text("schema: kiln/machine/v1\ninstance_type: p9.xlarge\nwings: 2\n")
    monkeypatch.setattr(description, "FOLDER", tmp_path)
    with pytest.raises(ProfileError, match=r"p9\.xlarge\.yaml is not a machine description") as caught:
        description.machine("p9.xlarge")
    assert {"wings", "board", "gpus"} <= {problem.path for problem in caught.value.problems}


def test_a_matrix_that_is_not_square_is_refused() -> None:
    data = description.machine("p3.16xlarge").model_dump(by_alias=True)
    data["pairs"] = data["pairs"][:7]
    with pytest.raises(ValueError, match="not a matrix of 8 rows"):
        description.Machine.model_validate(data)
