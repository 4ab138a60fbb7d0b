"""Break a good output in one way at a time: a parser refuses it or reads the same, and never less."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from profiles.errors import ParseError
from validation.explain import explain
from validation.facts import nvlink, smi_xml, topo, topo_p2p
from validation.facts.gpu import GpuInventory
from validation.facts.missing import ABSENT, Missing, Reason
from validation.verdict import Verdict

Parse = Callable[[str], object]
CASES: dict[str, Parse] = {
    "topo_text": topo.parse,
    "p2p_text": topo_p2p.parse,
    "nvlink_text": nvlink.parse,
    "xml_text": smi_xml.parse,
}
MATRICES = ("topo_text", "p2p_text")


@pytest.fixture(params=sorted(CASES))
def case(request: pytest.FixtureRequest) -> tuple[str, str, Parse]:
    name = str(request.param)
    return name, str(request.getfixturevalue(name)), CASES[name]


def attempt(parse: Parse, text: str) -> object | None:
    """The fact, or None where the parser refuses the text."""
    try:
        return parse(text)
    except ParseError:
        return None


def cuts(text: str) -> Iterator[str]:
    lines = text.splitlines(keepends=True)
    return ("".join(lines[:at]) for at in range(len(lines)))


def drops(text: str) -> Iterator[str]:
    lines = text.splitlines(keepends=True)
    return ("".join(lines[:at] + lines[at + 1 :]) for at in range(len(lines)))


def only_lost(changed: object, whole: object) -> bool:
    """Whether every difference is a field that is now absent or could not be looked at."""
    if changed == whole:
        return True
    if isinstance(changed, Missing):
        return changed.reason in (Reason.ABSENT, Reason.COULD_NOT_LOOK)
    if is_dataclass(whole) and not isinstance(whole, type) and type(changed) is type(whole):
        return all(only_lost(getattr(changed, item.name), getattr(whole, item.name)) for item in fields(whole))
    if isinstance(whole, tuple) and isinstance(changed, tuple) and len(changed) == len(whole):
        return all(only_lost(one, two) for one, two in zip(changed, whole, strict=True))
    return False


def test_the_good_outputs_are_read(case: tuple[str, str, Parse]) -> None:
    _, text, parse = case
    assert parse(text)


def test_carriage_returns_and_colours_change_nothing(case: tuple[str, str, Parse]) -> None:
    _, text, parse = case
    assert parse(text.replace("\n", "\r\n")) == parse(text)
    assert parse("\ufeff" + text) == parse(text)
    assert parse(text.replace("\n", "\x1b[0m\n")) == parse(text)


@pytest.mark.parametrize("name", MATRICES)
def test_a_matrix_cut_at_any_line_is_refused_or_still_whole(request: pytest.FixtureRequest, name: str) -> None:
    text, parse = str(request.getfixturevalue(name)), CASES[name]
    links = "links" if name == "topo_text" else "status"
    for cut in cuts(text):
        fact = attempt(parse, cut)
        assert fact is None or getattr(fact, links) == getattr(parse(text), links)


@pytest.mark.parametrize("name", MATRICES)
def test_a_matrix_without_one_of_its_gpu_rows_is_refused(request: pytest.FixtureRequest, name: str) -> None:
    text, parse = str(request.getfixturevalue(name)), CASES[name]
    lines = text.splitlines(keepends=True)
    for at, line in enumerate(lines):
        if line.strip().startswith("GPU") and at:
            assert attempt(parse, "".join(lines[:at] + lines[at + 1 :])) is None


@pytest.mark.parametrize("name", MATRICES)
def test_a_matrix_with_two_columns_swapped_in_its_header_is_refused(request: pytest.FixtureRequest, name: str) -> None:
    text, parse = str(request.getfixturevalue(name)), CASES[name]
    head, _, rest = text.partition("\n")
    swapped = head.replace("GPU1", "GPUx").replace("GPU2", "GPU1").replace("GPUx", "GPU2")
    assert attempt(parse, f"{swapped}\n{rest}") is None


@pytest.mark.parametrize("name", MATRICES)
def test_a_matrix_with_a_cell_too_many_or_too_few_is_refused(request: pytest.FixtureRequest, name: str) -> None:
    text, parse = str(request.getfixturevalue(name)), CASES[name]
    cell = "NV18" if name == "topo_text" else "OK"
    assert attempt(parse, text.replace(f"\t{cell}", "", 1)) is None
    assert attempt(parse, text.replace(f"\t{cell}", f"\t{cell}\t{cell}", 1)) is None


def test_a_matrix_with_a_word_that_no_driver_prints_is_refused(topo_text: str, p2p_text: str) -> None:
    assert attempt(topo.parse, topo_text.replace("NV18", "NVLINK", 1)) is None
    assert attempt(topo_p2p.parse, p2p_text.replace("OK", "YES", 1)) is None


def test_a_cut_nvlink_text_never_shows_a_gpu_with_fewer_links(nvlink_text: str) -> None:
    whole = nvlink.parse(nvlink_text).gpus
    for cut in cuts(nvlink_text):
        fact = attempt(nvlink.parse, cut)
        assert fact is None or (isinstance(fact, GpuInventory) and fact.gpus == whole[: len(fact.gpus)])


def test_an_nvlink_text_without_one_of_its_lines_is_refused(nvlink_text: str) -> None:
    for dropped in drops(nvlink_text):
        assert attempt(nvlink.parse, dropped) is None


def test_a_rate_in_another_locale_is_refused(nvlink_text: str) -> None:
    assert attempt(nvlink.parse, nvlink_text.replace("26.562", "26,562", 1)) is None


def test_an_xml_document_cut_at_any_line_is_refused(xml_text: str) -> None:
    for cut in cuts(xml_text):
        assert attempt(smi_xml.parse, cut) is None


def test_an_xml_document_without_one_of_its_lines_is_refused_or_says_which_field_is_gone(xml_text: str) -> None:
    whole = smi_xml.parse(xml_text)
    for dropped in drops(xml_text):
        fact = attempt(smi_xml.parse, dropped)
        assert fact is None or only_lost(fact, whole), dropped


def test_a_renamed_element_makes_its_field_absent_and_no_other_value(xml_text: str) -> None:
    renamed = smi_xml.parse(xml_text.replace("remapped_row_pending", "row_remap_is_pending"))
    assert all(gpu.remapped_rows.pending == ABSENT for gpu in renamed.gpus)


def test_a_word_that_is_neither_yes_nor_no_is_refused(xml_text: str) -> None:
    assert attempt(smi_xml.parse, xml_text.replace(">No<", ">Nein<", 1)) is None


STRICT = (
    "dcgm__r3_json_all_skip_T400.json",
    "lscpu__gh200_9_nodes.txt",
    "nccl__allreduce_8xa100_old_format.log",
    "numactl-H__hbm_cpuless_nodes.txt",
    "smi-q__h200_590.txt",
    "smi-x__real_qx-h100.xml",
    "topo-m__aws_p5.48xlarge.txt",
    "topo-p2p-r__8xh100_ok.txt",
)


@pytest.mark.parametrize("name", STRICT)
def test_a_real_output_cut_in_half_never_passes(samples: Path, name: str) -> None:
    lines = (samples / name).read_text(encoding="utf-8").splitlines(keepends=True)
    for share in (0.25, 0.5, 0.75):
        body = lines[: max(1, int(len(lines) * share))]
        if name.startswith("topo-p2p") and len(body) >= 10:
            continue  # only the legend is cut off
        assert explain("".join(body)).verdict in (Verdict.UNKNOWN, Verdict.FAIL), share
