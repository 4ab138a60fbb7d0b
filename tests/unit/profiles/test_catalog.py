"""The catalogue: every file loads, errors name file, line and key, and unknown names get the nearest ones."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from profiles import catalog, yamlfile
from profiles.catalog import Catalog
from profiles.errors import ConfigError, ProfileError
from profiles.models import InstanceProfile

FIRST = (
    "p5.48xlarge",
    "p4d.24xlarge",
    "g5.xlarge",
    "g5.48xlarge",
    "g6.xlarge",
    "g6e.xlarge",
    "g4dn.xlarge",
    "p3.16xlarge",
)


def load(instance_type: str) -> InstanceProfile:
    profile = catalog.load(instance_type)
    assert profile is not None
    return profile


@pytest.fixture
def folder(repository: Path, tmp_path: Path) -> Path:
    """A catalogue with one type and its board, to break."""
    for name in ("aws/p5.48xlarge.yaml", "boards/H100-SXM5-80GB.yaml", "software/dlami-base-2026-01.yaml"):
        target = tmp_path / name
        target.parent.mkdir()
        target.write_text((repository / "profiles" / name).read_text())
    (tmp_path / "alicloud").mkdir()
    return tmp_path


def edit(path: Path, old: str, new: str) -> int:
    """Replace one text of a file; the line it stands on."""
    text = path.read_text()
    assert text.count(old) == 1, old
    path.write_text(text.replace(old, new))
    return text[: text.index(old)].count("\n") + 1


def test_every_file_of_the_catalogue_loads() -> None:
    for name in catalog.types():
        load(name)
    for name in catalog.software_names():
        catalog.software(name)
    assert set(FIRST) <= set(catalog.types())


def test_every_board_file_is_used(repository: Path) -> None:
    boards = {path.stem for path in (repository / "profiles" / "boards").glob("*.yaml")}
    used = {load(name).gpu.board for name in catalog.types()}
    assert boards <= used


def test_no_file_lists_a_source_that_nothing_names(repository: Path) -> None:
    for path in sorted((repository / "profiles").glob("*/*.yaml")):
        text = path.read_text()
        for key in yamlfile.read(path).data.get("sources", {}) if path.parent.name != "software" else {}:
            assert f"source: {key}" in text, f"{path.name}: {key}"


def test_an_unknown_type_is_none_and_the_nearest_names_are_offered() -> None:
    assert catalog.load("p5.48xlrage") is None
    assert catalog.nearest("p5.48xlrage")[0] == "p5.48xlarge"
    assert catalog.nearest("quantum") == ()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("trn2.48xlarge", "It has AWS Trainium2, and Kiln judges NVIDIA GPUs only."),
        ("g4ad.xlarge", "It has AMD Radeon Pro V520 GPUs, and Kiln judges NVIDIA GPUs only."),
        ("ecs.ebmgi6s.24xlarge", "It has an Intel Server GPU, and Kiln judges NVIDIA GPUs only."),
        ("quantum", "docs/instance-types.md lists the types."),
    ],
)
def test_a_type_that_is_not_there_is_told_what_it_is(name: str, hint: str) -> None:
    assert catalog.load(name) is None
    assert catalog.hint(name) == hint


@pytest.mark.parametrize("name", ["../aws/p5.48xlarge", "", "p5.48xlarge.yaml"])
def test_a_name_is_never_a_path(name: str) -> None:
    assert catalog.load(name) is None


def test_an_unknown_software_profile_names_the_ones_there_are() -> None:
    with pytest.raises(ConfigError) as error:
        catalog.software("dlami-base-2026")
    assert str(error.value) == (
        "unknown software profile\n  - softwareProfile: found 'dlami-base-2026'; "
        "expected one of unpinned, dlami-base-2026-01. Did you mean dlami-base-2026-01?"
    )


def test_a_board_gives_what_the_type_leaves_out_and_the_type_wins(folder: Path) -> None:
    edit(folder / "aws/p5.48xlarge.yaml", "  pcie_width:", "  nvlinks: {value: 12, source: golden}\n  pcie_width:")
    profile = Catalog(folder).load("p5.48xlarge")
    assert profile is not None
    assert profile.links.nvlinks is not None
    assert (profile.links.nvlinks.value, profile.links.nvlinks.source) == (12, "golden")
    assert profile.gpu.names.value == ("NVIDIA H100 80GB HBM3",)


def test_a_type_may_bring_everything_itself(folder: Path) -> None:
    """One file is enough to add a type whose board is not in boards/."""
    source = yamlfile.read(folder / "aws/p5.48xlarge.yaml")
    board = yamlfile.read(folder / "boards/H100-SXM5-80GB.yaml")
    merged = catalog._merge(source, board)
    merged["gpu"]["board"] = "my-board"
    merged["instance_type"] = "own.type"
    (folder / "aws/own.type.yaml").write_text(yaml.safe_dump(merged))
    profile = Catalog(folder).load("own.type")
    assert profile is not None
    assert profile.gpu.count.value == 8


WRONG = [
    ("aws/p5.48xlarge.yaml", "  count: {value: 8,", "  count: {value: many,", "gpu.count.value: found 'many'"),
    ("aws/p5.48xlarge.yaml", "vcpus: {", "vcpuz: {", "vcpuz: found {'value': 192, 'source': 'ec2'}; expected Extra"),
    (
        "boards/H100-SXM5-80GB.yaml",
        "floor: 10.5, ceiling: 63, source: h100-copy}\n  d",
        "floor: 90, ceiling: 63, source: h100-copy}\n  d",
        "burn_in.h2d_gbps: found",
    ),
    (
        "aws/p5.48xlarge.yaml",
        "p2p: {value: OK, source: p2p}",
        "p2p: {value: OK, source: nowhere}",
        "sources that the file does not list: nowhere",
    ),
    (
        "aws/p5.48xlarge.yaml",
        "instance_type: p5.48xlarge",
        "instance_type: p5.47xlarge",
        "instance_type: found 'p5.47xlarge'; expected 'p5.48xlarge'",
    ),
    ("aws/p5.48xlarge.yaml", "provider: aws", "provider: alicloud", "provider: found 'alicloud'; expected 'aws'"),
    ("aws/p5.48xlarge.yaml", "architecture: x86_64", "provider: aws", "key provider is written twice"),
    ("aws/p5.48xlarge.yaml", "numa:\n", "numa: [\n", "not YAML"),
    ("aws/p5.48xlarge.yaml", "  x16: {", "  repair: {", "is also a source of boards/H100-SXM5-80GB.yaml"),
]


@pytest.mark.parametrize(("file", "old", "new", "message"), WRONG)
def test_a_wrong_file_names_file_line_and_key(folder: Path, file: str, old: str, new: str, message: str) -> None:
    line = edit(folder / file, old, new)
    with pytest.raises(ProfileError) as error:
        Catalog(folder).load("p5.48xlarge")
    text = str(error.value)
    assert message in text
    whole_file = "does not list" in message
    assert f"{Path(file).name}:{1 if whole_file else line}" in text or "not YAML" in message


def test_a_file_that_is_no_mapping_or_no_text_is_refused(folder: Path) -> None:
    path = folder / "aws/p5.48xlarge.yaml"
    for content, message in (
        (b"- a\n", "must be a mapping"),
        (b"", "must be a mapping"),
        (b"\xff\xfe\x00", "cannot be read"),
    ):
        path.write_bytes(content)
        with pytest.raises(ProfileError, match=message):
            Catalog(folder).load("p5.48xlarge")


def test_the_catalogue_imports_only_pyyaml_and_pydantic(repository: Path) -> None:
    """The lowest layer: a Pulumi program pays for what it imports."""
    allowed = {"yaml", "pydantic", "profiles"}
    standard = {
        "__future__",
        "ast",
        "collections",
        "dataclasses",
        "datetime",
        "difflib",
        "functools",
        "os",  # KILN_PROFILES
        "pathlib",
        "typing",
    }
    for path in (repository / "profiles").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert {name.split(".")[0] for name in names} <= allowed | standard, path.name


def test_every_value_of_a_profile_names_a_dated_source() -> None:
    for name in catalog.types():
        profile = load(name)
        for model in _models(profile):
            source = getattr(model, "source", None)
            if isinstance(source, str) and model is not profile:
                assert profile.sources[source].date.year >= 2023, name


def _models(model: BaseModel) -> list[BaseModel]:
    children = [value for value in vars(model).values() if isinstance(value, BaseModel)]
    return [model, *(found for child in children for found in _models(child))]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("\n  count: {value: 8, source: ec2}", "\n  count: {value: 0, source: ec2}", "a count of 1 or more"),
        ("\n  count: {value: 8, source: ec2}", "\n  count: {value: 4, source: ec2}", "8 nodes for 4 GPUs"),
    ],
)
def test_a_profile_that_nothing_could_fail_is_refused(folder: Path, old: str, new: str, why: str) -> None:
    edit(folder / "aws/p5.48xlarge.yaml", old, new)
    with pytest.raises(ProfileError, match=why):
        Catalog(folder).load("p5.48xlarge")


def test_a_software_profile_that_pins_nothing_is_refused(folder: Path) -> None:
    path = folder / "software/dlami-base-2026-01.yaml"
    path.write_text("name: dlami-base-2026-01\n")
    with pytest.raises(ProfileError, match="pins nothing"):
        Catalog(folder).software("dlami-base-2026-01")
    path.write_text('name: dlami-base-2026-01\ndriver: ""\n')
    with pytest.raises(ProfileError, match="an empty pin pins nothing: leave out driver"):
        Catalog(folder).software("dlami-base-2026-01")
