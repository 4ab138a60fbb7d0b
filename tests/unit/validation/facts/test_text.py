"""Single values: units are checked, escape codes go, PCI addresses have one spelling."""

from __future__ import annotations

import pytest

from profiles.errors import ParseError
from validation.facts.missing import Missing, Reason
from validation.facts.text import clean, cpu_list, flag, integer, number, pci_address, pci_value, word


def test_escape_codes_go_whether_closed_or_not() -> None:
    assert clean("\ufeff\t\x1b[4mGPU0\tGPU1\r\n\x1b]0;title\x07x\x1b[0m") == "\tGPU0\tGPU1\nx"


@pytest.mark.parametrize(
    ("raw", "address"),
    [
        ("00000000:CA:00.0", "0000:ca:00.0"),
        ("0000:0A:00.0", "0000:0a:00.0"),
        ("PCI:0000:9b:00", "0000:9b:00.0"),
        ("0000000E:00:00.0", "000e:00:00.0"),
        ("08:00.1", "0000:08:00.1"),
        ("0001:ab:cd", "0001:ab:cd.0"),
    ],
)
def test_a_pci_address_has_one_spelling(raw: str, address: str) -> None:
    assert pci_address(raw) == address


@pytest.mark.parametrize("raw", ["", "GPU0", "12", "0000:zz:00.0", "0000:00:00.9"])
def test_what_is_no_pci_address_is_none(raw: str) -> None:
    assert pci_address(raw) is None


def test_a_number_must_have_its_unit_or_none() -> None:
    assert number("81559 MiB", "MiB", "tool", "memory") == 81559
    assert number("69.85", "W", "tool", "power") == 69.85
    assert number("-2 C", "C", "tool", "limit") == -2
    with pytest.raises(ParseError, match="memory: '80 GiB' is not a number of MiB"):
        number("80 GiB", "MiB", "tool", "memory")
    with pytest.raises(ParseError):
        number("1,5 W", "W", "tool", "power")


def test_a_whole_number_is_not_rounded() -> None:
    assert integer("16x", "tool", "width", "x") == 16
    with pytest.raises(ParseError, match="not a whole number"):
        integer("1.5", "tool", "count")


def test_a_sentinel_is_missing_in_every_reader() -> None:
    for found in (word("N/A"), flag("N/A", "t", "w"), number("N/A", "W", "t", "w"), pci_value("N/A", "t", "w")):
        assert isinstance(found, Missing)
        assert found.reason is Reason.NOT_APPLICABLE


def test_yes_and_no_have_these_words_and_no_others() -> None:
    assert [flag(text, "t", "w") for text in ("Yes", "Enabled", "Active", "True", "On")] == [True] * 5
    assert [flag(text, "t", "w") for text in ("No", "Disabled", "Not Active", "False", "Off")] == [False] * 5
    with pytest.raises(ParseError, match="neither yes nor no"):
        flag("Ja", "t", "w")


def test_a_cpu_list_is_a_set() -> None:
    assert cpu_list("0-2,8", "t", 1) == {0, 1, 2, 8}
    assert cpu_list("", "t", 1) == frozenset()
    for bad in ("0-", "b", "3-1", "0-99999999", "0-65535,0-65535", "\u00b2", "1-\u00b2", "9" * 5000):
        with pytest.raises(ParseError):
            cpu_list(bad, "t", 1)


def test_something_that_is_no_pci_address_is_refused_by_name() -> None:
    with pytest.raises(ParseError, match="GPU0 bus id: 'first slot' is not a PCI address"):
        pci_value("first slot", "tool", "GPU0 bus id")
