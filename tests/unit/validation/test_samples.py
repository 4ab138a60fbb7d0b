"""Every real tool output gives the conclusion of the samples' README, and nothing weaker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from profiles import catalog
from profiles.models import Expected
from validation.explain import Explanation, explain
from validation.recognise import recognise
from validation.verdict import FaultClass, Verdict

TABLE: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("samples.yaml").read_text(encoding="utf-8"))
JUDGED = sorted(name for name, row in TABLE.items() if "judged" in row)


def read(samples: Path, name: str) -> str:
    return (samples / name).read_bytes().decode("utf-8")


def lookup(facts: Any, path: str) -> Any:
    """The value at a path; ``#`` at the end asks for a length, ``*`` for the distinct values, sorted."""
    found = facts
    for part in split(path.removesuffix("#")):
        if part == "*":
            found = sorted(set(found.values() if isinstance(found, dict) else found))
        else:
            found = found[int(part)] if isinstance(found, list) else found[part]
    return len(found) if path.endswith("#") else found


def split(path: str) -> list[str]:
    return path.split(".")


def check_findings(explanation: Explanation, wanted: list[list[str]]) -> None:
    found = [(f.check, f.subject, f.verdict.value, f.message) for f in explanation.findings]
    for check, subject, verdict, words in wanted:
        assert any(f[:3] == (check, subject, verdict) and words in f[3] for f in found), (check, subject, words, found)


def test_the_table_and_the_folder_list_the_same_files(samples: Path) -> None:
    assert sorted(TABLE) == sorted(path.name for path in samples.iterdir() if path.name != "README.md")


@pytest.mark.parametrize("name", sorted(TABLE))
def test_a_sample_is_recognised_as_what_it_is(samples: Path, name: str) -> None:
    kind = recognise(read(samples, name))
    assert kind is not None
    assert kind.name == TABLE[name]["kind"]


@pytest.mark.parametrize("name", sorted(TABLE))
def test_a_sample_gives_its_conclusion_without_a_profile(samples: Path, name: str) -> None:
    row = TABLE[name]
    explanation = explain(read(samples, name))
    assert explanation.verdict.value == row["verdict"], explanation.findings
    facts = explanation.to_dict()["facts"]
    for path, value in row["facts"].items():
        assert lookup(facts, path) == value, path
    if not row["facts"]:
        assert facts == {}
    check_findings(explanation, row.get("findings", []))
    assert set(row.get("not_judged", [])) <= {item.check for item in explanation.not_judged}
    failing = [finding for finding in explanation.findings if finding.verdict is Verdict.FAIL]
    if "only_failing" in row:
        assert sorted({finding.subject for finding in failing}) == sorted(row["only_failing"])
    if "failing_count" in row:
        assert len(failing) == row["failing_count"]
    if "fault_class" in row:
        assert FaultClass(row["fault_class"]) in {finding.fault_class for finding in failing}


@pytest.mark.parametrize("name", JUDGED)
def test_a_sample_gives_its_conclusion_with_the_profile_of_its_machine(samples: Path, name: str) -> None:
    row = TABLE[name]
    explanation = explain(read(samples, name), profile=row["profile"])
    assert explanation.verdict.value == row["judged"], explanation.findings
    check_findings(explanation, row.get("judged_findings", []))


def test_an_nvlink_bridge_missing_at_boot_fails_with_a_reboot_where_the_profile_expects_it(samples: Path) -> None:
    good = catalog.load("p4d.24xlarge")
    assert good is not None
    pair = good.model_copy(
        update={
            "instance_type": "nc80adis",
            "gpu": good.gpu.model_copy(update={"count": Expected[int](value=2, source="links")}),
            "links": good.links.model_copy(update={"pairs": Expected[str](value="NV12", source="links")}),
            "numa": good.numa.model_copy(update={"gpu_nodes": None}),
        }
    )
    explanation = explain(read(samples, "topo-m__azure_nc80adis_nvlink_missing_on_boot.txt"), profile=pair)
    assert explanation.verdict is Verdict.FAIL
    assert [finding.fault_class for finding in explanation.findings] == [FaultClass.REBOOT_ONCE]
    check_findings(explanation, [["topology.pairs", "GPU0-GPU1", "FAIL", "SYS instead of NV12"]])


@pytest.mark.parametrize("name", sorted(TABLE))
def test_windows_line_ends_and_colour_change_no_conclusion(samples: Path, name: str) -> None:
    text = read(samples, name)
    coloured = "\n".join(f"\x1b[1m{line}\x1b[0m" if line.strip() else line for line in text.split("\n"))
    plain = explain(text)
    for changed in (text.replace("\n", "\r\n"), coloured):
        again = explain(changed)
        assert (again.kind, again.verdict) == (plain.kind, plain.verdict)
        assert again.to_dict()["facts"].keys() == plain.to_dict()["facts"].keys()
