"""A draft from a good host: it loads, keeps the gate shut until it is reviewed, and then describes that host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from profiles.catalog import Catalog
from profiles.errors import ConfigError, LookError, ProfileError
from profiles.models import InstanceProfile
from validation import baseline
from validation.baseline import Origin
from validation.facts.gpu import GpuInventory
from validation.facts.host import DriverModule, NumaMap
from validation.facts.missing import Missing, Reason
from validation.judge import judge_facts
from validation.verdict import Verdict, combine

if TYPE_CHECKING:
    from tests.unit.validation.checks.conftest import Host

DAY = "2026-11-30"
TYPES = ["g5.xlarge", "g6.48xlarge", "p3.16xlarge", "p4d.24xlarge", "p5.48xlarge", "p6-b200.48xlarge", "g5g.xlarge"]


def loaded(folder: Path, text: str, *, reviewed: bool = True) -> InstanceProfile:
    (folder / "my.type.yaml").write_text(text.replace("reviewed: false", "reviewed: true") if reviewed else text)
    profile = Catalog(own=folder).load("my.type")
    assert profile is not None
    return profile


def bad(host: Host, profile: InstanceProfile) -> list[str]:
    expected = host.expected.model_copy(update={"profile": profile, "instance_type": "my.type"})
    findings = judge_facts(host.facts(), expected, "host")
    assert combine(findings).opens_gate == (not any(not f.verdict.opens_gate and f.required for f in findings))
    return [f"{f.check}: {f.message}" for f in findings if f.required and not f.verdict.opens_gate]


@pytest.mark.parametrize("board", ["known", "unknown"])
@pytest.mark.parametrize("instance_type", TYPES)
def test_a_reviewed_draft_judges_its_own_host_as_good(
    instance_type: str, board: str, tmp_path: Path, host: Callable[..., Host]
) -> None:
    one = host(instance_type)
    assert one.profile is not None
    name = one.profile.gpu.board if board == "known" else ""
    text = baseline.draft(one.facts(), "my.type", Origin("gpu-1", DAY, name))
    before = [f.check for f in judge_facts(one.facts(), one.expected, "host") if not f.verdict.opens_gate]
    after = [entry.split(":")[0] for entry in bad(one, loaded(tmp_path, text))]
    assert set(after) <= set(before), text


def test_a_draft_keeps_the_gate_shut_and_says_what_to_do(tmp_path: Path, host: Callable[..., Host]) -> None:
    one = host("g5.xlarge")
    text = baseline.draft(one.facts(), "my.type", Origin("gpu-1", DAY))
    found = bad(one, loaded(tmp_path, text, reviewed=False))
    assert found == ["host.profile: the profile of my.type is a draft, recorded from one host and reviewed by nobody"]


def test_every_value_names_the_host_and_the_day(tmp_path: Path, host: Callable[..., Host]) -> None:
    profile = loaded(tmp_path, baseline.draft(host("p5.48xlarge").facts(), "my.type", Origin("gpu-1", DAY)))
    assert {key: source.text for key, source in profile.sources.items()} == {
        "recorded": "recorded from gpu-1 on 2026-11-30, to be reviewed"
    }
    assert profile.links.nvlinks is not None
    assert profile.links.nvlinks.value == 18
    assert profile.links.fabric is not None
    assert profile.links.fabric.value == "hgx"
    assert profile.numa.gpu_nodes is not None


def test_what_the_gpus_do_not_agree_on_is_left_out_and_named(host: Callable[..., Host]) -> None:
    one = host("p5.48xlarge").gpu(3, power_limit_default_w=500.0)
    text = baseline.draft(one.facts(), "my.type", Origin("gpu-1", DAY))
    assert "power_limit_w: {" not in text
    assert "# left out: gpu.power_limit_w: the host does not tell it, or not the same of every GPU" in text


def test_a_map_that_cannot_be_read_is_left_out_and_named(tmp_path: Path, host: Callable[..., Host]) -> None:
    text = baseline.draft(host("p5.48xlarge").drop(NumaMap).facts(), "my.type", Origin("gpu-1", DAY))
    assert "# left out: numa: tool: not found" in text
    assert loaded(tmp_path, text).numa.nodes is None


def test_a_host_that_cannot_be_read_is_no_baseline(host: Callable[..., Host]) -> None:
    broken = [
        host("g5.xlarge").drop(GpuInventory),
        host("g5.xlarge").drop(DriverModule),
        host("g5.xlarge").put(GpuInventory("nvml", ())),
        host("g5.xlarge").gpu(0, name=Missing(Reason.FAULT, "GPU is lost")),
        host("g5.xlarge").gpu(0, memory_total_mib=Missing(Reason.COULD_NOT_LOOK)),
    ]
    for one in broken:
        with pytest.raises(LookError):
            baseline.draft(one.facts(), "my.type", Origin("gpu-1", DAY))


def test_several_kinds_of_gpu_are_no_profile(host: Callable[..., Host]) -> None:
    one = host("p5.48xlarge").gpu(3, name="NVIDIA L4")
    with pytest.raises(ConfigError, match="several kinds of GPU"):
        baseline.draft(one.facts(), "my.type", Origin("gpu-1", DAY))


def test_a_profile_of_one_s_own_may_not_take_a_shipped_name(tmp_path: Path, host: Callable[..., Host]) -> None:
    text = baseline.draft(host("g5.xlarge").facts(), "g5.xlarge", Origin("gpu-1", DAY))
    (tmp_path / "g5.xlarge.yaml").write_text(text)
    with pytest.raises(ProfileError, match="the catalogue has a type of this name"):
        Catalog(own=tmp_path).load("g5.xlarge")


def test_an_unknown_type_names_the_command_that_drafts_its_profile(host: Callable[..., Host]) -> None:
    expected = host("g5.xlarge").expected.model_copy(update={"profile": None, "instance_type": "p99.bogus"})
    first = judge_facts(host("g5.xlarge").facts(), expected, "host")[0]
    assert (first.check, first.verdict) == ("host.profile", Verdict.UNKNOWN)
    assert first.remedy.endswith("kiln baseline record --hosts inventory.yaml --host NAME --type p99.bogus")


def test_a_board_is_named_only_where_one_alone_has_the_name() -> None:
    boards = Catalog().boards()
    assert baseline.board_of(["NVIDIA A10G"], boards) == "A10G"
    assert baseline.board_of(["NVIDIA A10G", "NVIDIA L4"], boards) == ""
    assert baseline.board_of(["NVIDIA Z1"], boards) == ""
