"""What DCGM prints in its generations: diagnostic, health watches, NVLink states and counters; short own texts."""

from __future__ import annotations

import json

import pytest

from profiles.errors import ParseError
from validation.facts import dcgm, dcgm_health, dcgm_nvlink
from validation.facts.gpu import GpuInventory
from validation.facts.missing import Missing, Reason
from validation.facts.nvlink_errors import NvLinkErrors

RULE = "+---------------------------+------------------------------------------------+\n"
TABLE = (
    f"Successfully ran diagnostic for group.\n{RULE}"
    "| Diagnostic                | Result                                         |\n"
    "+===========================+================================================+\n"
    "|-----  Deployment  --------+------------------------------------------------|\n"
    "| software                  | Pass                                           |\n"
    "|                           | GPU0: Pass                                     |\n"
    "|                           | GPU1: Fail                                     |\n"
    "| Warning: GPU1             | GPU 1 Persistence mode is off on this machine  |\n"
    "|                           | , enable it                                    |\n"
    "|                           | GPU2: Pass                                     |\n"
    "| PCIe                      | Skip - All                                     |\n"
    f"{RULE}"
)


def table(*rows: tuple[str, str]) -> str:
    cells = "".join(f"| {name:<26}| {value:<47}|\n" for name, value in rows)
    return f"{RULE}| Diagnostic                | Result |\n{cells}{RULE}"


def new_json(*results: dict[str, object], **changes: object) -> str:
    tests = [{"name": "pcie", "results": list(results), **changes}]
    return json.dumps({"DCGM Diagnostic": {"test_categories": [{"tests": tests}]}})


def result(status: str, **changes: object) -> dict[str, object]:
    return {"entity_group": "GPU", "entity_id": 3, "status": status, **changes}


def test_the_table_of_dcgm_4_is_read_gpu_by_gpu() -> None:
    software, pcie = dcgm.parse_diag(TABLE).tests
    assert software.results == ((-1, "pass"), (0, "pass"), (1, "fail"), (2, "pass"))
    assert [(note.text, note.gpu) for note in software.notes] == [
        ("GPU 1 Persistence mode is off on this machine, enable it", 1)
    ]
    assert pcie.results == ((-1, "skip"),)


def test_a_list_that_was_cut_still_fails() -> None:
    text = table(("PCIe", "Fail - GPUs: 0, 1, 12..."))
    assert dcgm.parse_diag(text).tests[0].results == ((0, "fail"), (1, "fail"), (-1, "fail"))


def test_information_is_no_warning() -> None:
    (one,) = dcgm.parse_diag(table(("PCIe", "Pass - All"), ("Info", "GPU 0 40 GB/s"), ("", "more of it"))).tests
    assert (one.results, one.notes) == (((-1, "pass"),), ())


def test_a_part_that_is_no_gpu_is_named() -> None:
    (one,) = dcgm.parse_diag(table(("cpu_eud", "Fail"), ("", "CPU0: Fail"))).tests
    assert (one.results, one.notes[0].text) == (((-1, "fail"), (-1, "fail")), "CPU0: Fail")


def test_dcgm_json_of_both_generations_is_read() -> None:
    old = {"DCGM GPU Diagnostic": {"test_categories": [{"tests": [
        {"name": "PCIe", "results": [{"gpu_ids": "0,1", "status": "Pass"}, {"gpu_id": "2", "status": "Fail",
         "warnings": "link"}]}]}]}}  # fmt: skip
    assert dcgm.parse_diag(json.dumps(old)).tests[0].results == ((0, "pass"), (1, "pass"), (2, "fail"))
    (one,) = dcgm.parse_diag(new_json(result("Warn", warnings=[{"warning": "slow", "error_severity": 5}]))).tests
    assert (one.results, one.notes) == (((3, "warn"),), (dcgm.DcgmNote("slow", 3, 5),))


def test_a_summary_that_fails_beside_results_that_pass_is_a_failure() -> None:
    (one,) = dcgm.parse_diag(new_json(result("Pass"), test_summary={"status": "Fail"})).tests
    assert one.results == ((3, "pass"), (-1, "fail"))


def test_every_iteration_counts() -> None:
    runs = [json.loads(new_json(result(word))) for word in ("Pass", "Fail")]
    assert [test.results[0][1] for test in dcgm.parse_diag(json.dumps({"iterations": runs})).tests] == ["pass", "fail"]


@pytest.mark.parametrize(
    "text",
    [
        "Error: Unable to complete diagnostic for group 7.\n",
        'Error: requested test "memory bandwidth" was not found among possible test choices.\n',
        json.dumps({"DCGM Diagnostic": {"runtime_error": "Error: Host engine connection invalid\n"}}),
    ],
)
def test_a_diagnostic_that_was_not_run_says_why(text: str) -> None:
    diag = dcgm.parse_diag(text)
    assert dcgm.is_it(text)
    assert (diag.tests, diag.errors[0][:6]) == ((), "Error:")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{}",
        '{"DCGM Diagnostic": {"test_categories": []}}',
        new_json(),
        new_json(result("Splendid")),
        TABLE[: TABLE.rindex("\n+")],
        TABLE[: TABLE.index("| software")].replace("|-----", "+-----") + "| a | Pass |\n+-----  Hardware  ---+---+\n",
        TABLE.replace("| PCIe                      |", "| PCIe "),
        table(("PCIe", "Splendid")),
        table(("PCIe", "Pass"), ("Memory", "")),
    ],
)
def test_a_diagnostic_of_another_shape_or_cut_short_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        dcgm.parse_diag(text)


BAD = "| Overall Health            | Failure   |\n"
TREE = (
    f"{BAD}| GPU     |      |\n| -> 3          | Failure   |\n|    -> Errors  |      |\n"
    "|       -> Memory system       | Failure   |\n|     | too many |\n"
)


def test_incidents_are_read_in_the_old_and_the_new_tree() -> None:
    flat = f"{BAD}| -> GPU 3          | Failure   |\n|    -> Memory system       | Failure   |\n|     | too many |\n"
    wanted = ((3, "Memory system", "Failure", ("too many",)),)
    assert dcgm_health.parse(TREE).incidents == wanted
    assert dcgm_health.parse(flat).incidents == wanted
    assert dcgm_health.parse(BAD.replace("Failure", "Healthy")).incidents == ()


def test_a_switch_is_named_and_is_no_gpu() -> None:
    incident = dcgm_health.parse(TREE.replace("| GPU     |", "| NvSwitch |")).incidents[0]
    assert incident[:2] == (-1, "NvSwitch 3: Memory system")


def test_health_as_json_says_the_same() -> None:
    errors = {"children": {"Memory system": {"value": "Failure", "sentences": [{"value": "too many"}]}}}
    body = {"Overall Health": {"value": "Failure"}, "GPU": {"children": {"3": {"children": {"Errors": errors}}}}}
    text = json.dumps({"body": body})
    assert dcgm_health.is_it(text)
    assert dcgm_health.parse(text) == dcgm_health.parse(TREE)


def test_watches_that_are_off_are_said_to_be() -> None:
    assert dcgm_health.parse("Error: Health watches not enabled. Please enable watches.\n").error.startswith("Error")


@pytest.mark.parametrize("text", ["", BAD, RULE + BAD + TREE, "{", '{"body": {}}'])
def test_health_that_is_bad_must_say_why(text: str) -> None:
    with pytest.raises(ParseError):
        dcgm_health.parse(text)


LINKS = (
    "+----------------------+\n|  NvLink Link Status  |\n+----------------------+\nGPUs:\n"
    "    gpuId 0:\n        U U D X _\n    gpuId 1:\n        _ _ _ _ _\n"
    "NvSwitches:\n    No NvSwitches found.\n\nKey: Up=U, Down=D, Disabled=X, Not Supported=_\n"
)
COUNTERS = (
    f"{RULE}| NVLINK Error Counts                                          |\n| GPU 0             |\n{RULE}"
    + "".join(f"| Link {link} | |\n| -> Replay Error | {link} |\n| -> Symbol BER | 15 |\n" for link in range(2))
    + RULE
)


def test_the_letters_of_dcgm_are_links() -> None:
    found = dcgm_nvlink.parse(LINKS)
    assert isinstance(found, GpuInventory)
    one, two = found.gpus
    assert not isinstance(one.nvlinks, Missing)
    assert [(link.index, link.active) for link in one.nvlinks] == [(0, True), (1, True), (2, False), (3, False)]
    assert two.nvlinks == Missing(Reason.NOT_APPLICABLE, "Not Supported")


def test_the_counters_of_dcgm_have_nvidia_smis_names_and_no_rates() -> None:
    found = dcgm_nvlink.parse(COUNTERS)
    assert isinstance(found, NvLinkErrors)
    assert [(item.link, item.name, item.count) for item in found.counters] == [
        (0, "Replay Errors", 0),
        (1, "Replay Errors", 1),
    ]


def test_counters_as_json_say_the_same() -> None:
    links = {f"Link {link}": {"children": {"Replay Error": {"value": str(link)}}} for link in range(2)}
    text = json.dumps({"header": ["NVLINK Error Counts", "GPU 0"], "body": links})
    assert dcgm_nvlink.is_it(text)
    assert dcgm_nvlink.parse(text) == dcgm_nvlink.parse(COUNTERS)


@pytest.mark.parametrize(
    "text",
    [
        "",
        LINKS[: LINKS.index("NvSwitches")],
        LINKS.replace("        _ _ _ _ _\n", ""),
        LINKS.replace("    gpuId 1:", "    gpuId 0:"),
        COUNTERS.removesuffix(RULE),
        COUNTERS.replace("| -> Replay Error | 1 |\n", ""),
        '{"header": ["NVLINK Error Counts"]',
    ],
)
def test_links_cut_short_are_refused(text: str) -> None:
    with pytest.raises(ParseError):
        dcgm_nvlink.parse(text)


def test_a_table_and_a_document_in_one_text_are_not_read_half() -> None:
    good, bad = table(("PCIe", "Pass - All")), new_json(result("Fail"))
    for both in (f"{good}{bad}", f"{bad}\n{good}"):
        with pytest.raises(ParseError):
            dcgm.parse_diag(both)


def test_rows_without_the_tables_frame_are_read_and_said_to_be_a_part() -> None:
    whole = table(("PCIe", "Pass - All"))
    heading, row = whole.split("\n")[1:3]
    assert dcgm.parse_diag(whole).omitted == dcgm.parse_diag(f"{heading}\n{row}\n{RULE}").omitted == ()
    assert dcgm.parse_diag(f"{row}\n{RULE}").omitted == ("the table's beginning is missing",)
    section = RULE.replace("-----", "Stage", 1)
    assert dcgm.parse_diag(f"{section}{row}\n{RULE}").omitted == ("the table's beginning is missing",)
    assert dcgm.parse_diag(f"{heading}\n{row}\n").omitted == ("the table's end is missing",)
    assert dcgm.parse_diag(f"{row}\n").tests == dcgm.parse_diag(whole).tests
