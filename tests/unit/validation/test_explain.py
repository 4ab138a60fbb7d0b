"""explain: the verdict follows the findings, what was not judged is listed, and nothing is judged without its facts."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from profiles import catalog
from profiles.errors import ConfigError
from profiles.models import Expectation
from validation import explain as module
from validation.checks.base import Check
from validation.checks.tool_smi import NvlinkAlone
from validation.explain import SCHEMA, explain
from validation.facts import inventory_view
from validation.facts.store import Facts
from validation.recognise import names
from validation.verdict import Finding, Verdict

LINKS = "GPU 0: NVIDIA L40S (UUID: GPU-0)\nDevice does not have or support Nvlink\n"
CSV = "index, name, uuid, memory.used [MiB], ecc.errors.uncorrected.volatile.total\n{rows}"


def test_the_json_has_the_keys_of_its_schema() -> None:
    data = explain("No devices were found\n").to_dict()
    assert set(data) == {"schema", "kind", "title", "facts", "findings", "not_judged", "verdict"}
    assert data["schema"] == SCHEMA
    assert {"check", "subject", "verdict", "message", "remedy", "fault_class"} <= set(data["findings"][0])
    assert json.loads(json.dumps(data)) == data


def test_a_text_that_nobody_knows_is_unknown_and_says_how_to_name_it() -> None:
    explanation = explain("hello\n")
    assert (explanation.kind, explanation.verdict) == ("unknown", Verdict.UNKNOWN)
    assert "--kind" in explanation.findings[0].remedy
    assert "topo-m" in explanation.findings[0].remedy


@pytest.mark.parametrize("text", ["", "\n", "\x00\x01\x02", "\ud800".encode("utf-8", "replace").decode()])
def test_an_empty_or_binary_text_is_unknown(text: str) -> None:
    assert explain(text).verdict is Verdict.UNKNOWN


def test_a_wrong_kind_or_profile_is_an_error_that_names_the_right_ones() -> None:
    with pytest.raises(ConfigError, match="topo-m"):
        explain(LINKS, kind="topology")
    with pytest.raises(ConfigError, match=r"p5\.48xlarge"):
        explain(LINKS, profile="p5.48xlrage")


@pytest.mark.parametrize("kind", names())
def test_a_text_of_another_tool_is_unknown_and_never_passes(kind: str) -> None:
    assert explain("this is the output of none of them\n", kind=kind).verdict is Verdict.UNKNOWN


def test_what_only_a_profile_can_judge_is_listed_with_the_option() -> None:
    open_checks = {item.check: item.needs for item in explain(LINKS).not_judged}
    assert open_checks["nvlink.links_active"] == "--profile TYPE"


def test_what_needs_the_whole_host_is_listed_so() -> None:
    text = "0000:07:00.0 3D controller [0302]: NVIDIA Corporation L4 [10de:27b8] (rev a1)\n"
    explanation = explain(text)
    assert "whole host" in {item.check: item.needs for item in explanation.not_judged}["gpu.pci_bus"]
    assert "gpu.pci_bus" not in {finding.check for finding in explanation.findings}


def test_settings_of_the_stack_are_never_judged_from_a_text() -> None:
    text = "index, mig.mode.current, mig.mode.pending, persistence_mode\n0, Enabled, Enabled, Disabled\n"
    explanation = explain(text)
    open_checks = {item.check for item in explanation.not_judged}
    assert {"gpu.mig", "gpu.persistence"} <= open_checks
    assert explanation.verdict is Verdict.NOT_APPLICABLE


def test_a_check_is_not_made_on_fields_that_the_text_does_not_carry() -> None:
    explanation = explain(CSV.format(rows="0, NVIDIA L4, GPU-0, 0 MiB, 0\n"))
    made = {finding.check for finding in explanation.findings}
    assert "ecc.uncorrected" in made
    assert made.isdisjoint({"gpu.throttle", "memory.row_remap", "fabric.state", "driver.loaded", "gpu.temperature"})
    assert explanation.verdict is Verdict.PASS


def test_a_refused_field_is_unknown_and_an_error_in_its_place_fails() -> None:
    refused = explain(CSV.format(rows="0, NVIDIA L4, GPU-0, [Insufficient Permissions], 0\n"))
    broken = explain(CSV.format(rows="0, NVIDIA L4, GPU-0, [Unknown Error], 0\n"))
    assert (refused.verdict, broken.verdict) == (Verdict.UNKNOWN, Verdict.FAIL)


def test_a_lost_gpu_above_a_table_fails_although_the_others_are_fine() -> None:
    text = "Unable to determine the device handle for GPU1: 0000:34:00.0: Unknown Error\n"
    explanation = explain(text + CSV.format(rows="0, NVIDIA L4, GPU-0, 0 MiB, 0\n"))
    assert explanation.kind == "nvidia-smi-csv"
    assert explanation.verdict is Verdict.FAIL
    assert {finding.subject for finding in explanation.findings if finding.verdict is Verdict.FAIL} == {"0000:34:00.0"}


def test_a_driver_error_in_any_output_is_found() -> None:
    text = "# nThread 1 nGpus 8 minBytes 8\nTest NCCL failure: system not yet initialized\n"
    explanation = explain(text)
    assert (explanation.kind, explanation.verdict) == ("nccl-tests", Verdict.FAIL)
    assert explanation.findings[0].check == "driver.loaded"


def test_a_fail_stands_before_an_unknown() -> None:
    rows = "0, NVIDIA L4, GPU-0, [Insufficient Permissions], 0\n1, NVIDIA L4, GPU-1, 0 MiB, 7\n"
    assert explain(CSV.format(rows=rows)).verdict is Verdict.FAIL


def test_an_advisory_finding_warns_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = catalog.load("g6.xlarge")
    assert profile is not None
    soft = profile.model_copy(update={"advisory": {"gpu.name": "only a test"}})
    text = CSV.format(rows="0, NVIDIA L40S, GPU-0, 0 MiB, 0\n")
    assert explain(text, profile=profile).verdict is Verdict.FAIL
    assert explain(text, profile=soft).verdict is Verdict.WARN


def test_a_check_that_crashes_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    class Crash(NvlinkAlone):
        id = "tool.crash"

        def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
            raise ZeroDivisionError("on purpose")

    checks: tuple[Check, ...] = (Crash(),)
    monkeypatch.setattr(module, "TOOL_CHECKS", checks)
    monkeypatch.setattr(inventory_view, "carries", lambda *_: True)
    explanation = explain(LINKS)
    crash = next(finding for finding in explanation.findings if finding.check == "tool.crash")
    assert explanation.verdict is Verdict.UNKNOWN
    assert "on purpose" in crash.message


@pytest.mark.parametrize(
    "text",
    [
        "Failed to run topology matrix\n\n",
        "Failed to display p2p capability matrix for the specified p2p Index\n\n",
        f"{LINKS}\nFailed to run topology matrix\n",
    ],
)
def test_a_matrix_that_nvidia_smi_gave_up_on_is_no_verdict_on_a_gpu(text: str) -> None:
    """A lost GPU is one of several causes, so the text alone proves none; it is not good either."""
    explanation = explain(text)
    assert explanation.verdict is Verdict.UNKNOWN
    found = next(finding for finding in explanation.findings if finding.check == "driver.loaded")
    assert "nvidia-smi -q" in found.remedy


TABLE = """\
+-------------------------------------------------------------------------------+
| NVIDIA-SMI 590.1          Driver Version: 590.1          CUDA Version: 13.1   |
+-----------------------------------+------------------------+------------------+
|   0  NVIDIA H100 80GB HBM3    On  |   00000000:00:09.0 Off |        {ecc:>8}  |
| N/A   32C    P0       70W /  700W |       1MiB /  81559MiB |  0%      Default |
|                                   |                        |        {mig:>8}  |
+-----------------------------------+------------------------+------------------+
| Processes:                                                                    |
|  No running processes found                                                   |
+-------------------------------------------------------------------------------+
"""


def test_a_table_is_judged_by_its_cells_and_what_it_does_not_show_is_listed() -> None:
    good, bad = explain(TABLE.format(ecc="0", mig="Disabled")), explain(TABLE.format(ecc="3", mig="Disabled"))
    assert (good.verdict, bad.verdict) == (Verdict.PASS, Verdict.FAIL)
    assert [finding.check for finding in bad.findings if finding.verdict is Verdict.FAIL] == ["ecc.uncorrected"]
    assert {"memory.row_remap", "gpu.throttle"} <= {item.check for item in good.not_judged}
    assert "inventory" not in good.to_dict()["facts"]["SmiTable"]


def test_the_errors_of_a_gpu_in_mig_mode_are_not_taken_for_none() -> None:
    made = {finding.check for finding in explain(TABLE.format(ecc="On", mig="Enabled")).findings}
    assert "ecc.uncorrected" not in made


def test_pairs_sets_and_missing_values_have_a_form_in_json() -> None:
    data = explain(
        "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV4\t0-3\t0-1\nGPU1\tNV4\t X \t0-3\t0\n"
    ).to_dict()
    topology = data["facts"]["Topology"]
    assert topology["links"] == {"0-1": "NV4", "1-0": "NV4"}
    assert topology["cpu_affinity"]["0"] == [0, 1, 2, 3]
    assert topology["numa"] == {"0": {"missing": "could not look", "text": "0-1"}, "1": 0}
