from __future__ import annotations

from pathlib import Path

import pytest

from kiln.__main__ import COMMANDS
from profiles import catalog
from sandbox.hosts.faults import FAULTS
from tools import docs
from validation.checks import CHECKS
from validation.uniform import RULES


def test_every_check_has_a_section_with_why_source_and_remedy() -> None:
    page = docs.checks_page()
    for check in CHECKS:
        section = page.split(f"\n### {check.id}\n", 1)[1].split("\n### ", 1)[0]
        for text in (check.why, check.source, check.remedy, check.fault_class.value):
            assert text in section


def test_what_is_compared_over_a_stack_has_its_section() -> None:
    page = docs.checks_page()
    for rule in RULES:
        assert f"](#{rule.check.replace('.', '')})" in page
        section = page.split(f"\n### {rule.check}\n", 1)[1].split("\n### ", 1)[0]
        assert all(text in section for text in (rule.why, rule.source, rule.remedy, rule.fault_class.value))


def test_every_fault_is_a_row() -> None:
    page = docs.faults_page()
    assert all(f"| `{name}` |" in page for name in FAULTS)


def test_every_command_and_subcommand_has_its_help() -> None:
    page = docs.cli_page()
    assert all(f"\n## kiln {name}\n" in page for name in COMMANDS)
    assert "\n## kiln sandbox fault\n" in page


def test_every_type_is_a_row_and_every_advisory_reason_is_told() -> None:
    page = docs.types_page()
    for name in catalog.types():
        profile = catalog.load(name)
        assert profile is not None
        assert f"\n| {name} | " in page
        assert all(f"| {check} | {reason} |" in page for check, reason in profile.advisory.items())


def test_every_type_is_counted_in_its_family() -> None:
    rows = [row.split(" | ") for row in docs.families_table().splitlines()[2:]]
    assert sum(int(row[1]) for row in rows) == len(catalog.types())
    families = {row[0].removeprefix("| "): row[1:] for row in rows}
    assert families["p5"] == ["2", "1 to 8 x H100-SXM5-80GB", "0 to 2 |"]
    assert families["ecs.vgn6i-vws"][:2] == ["3", "1 x T4 (shares)"]


def test_a_table_is_put_between_its_marks_and_nothing_else_changes() -> None:
    text = "a\n<!-- t:begin -->\nold\n<!-- t:end -->\nb\n"
    assert docs._between(text, "t", "new") == "a\n<!-- t:begin -->\nnew\n<!-- t:end -->\nb\n"


def test_missing_marks_are_an_error() -> None:
    with pytest.raises(ValueError, match="no marks"):
        docs._between("a\n<!-- t:begin -->\n", "t", "new")


def test_what_is_out_of_date_is_named_and_only_written_without_check(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(docs, "ROOT", tmp_path)
    monkeypatch.setattr(docs, "PAGES", {"page.md": lambda: "new\n"})
    monkeypatch.setattr(docs, "TABLES", {})
    (tmp_path / "page.md").write_text("old\n")
    assert docs.main(["--check"]) == 1
    assert (tmp_path / "page.md").read_text() == "old\n"
    assert "out of date: page.md" in capsys.readouterr().err
    assert docs.main([]) == 0
    assert (tmp_path / "page.md").read_text() == "new\n"
    assert docs.main(["--check"]) == 0
