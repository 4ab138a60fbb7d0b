"""The list of checks, the modules, the tests and the texts agree."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from profiles import catalog
from validation import checks as package
from validation.checks import CHECKS
from validation.checks.base import Check
from validation.checks.tools import TOOL_CHECKS
from validation.facts.missing import Missing, Reason
from validation.verdict import FaultClass, Verdict

FOLDER = Path(package.__file__).parent


def classes() -> dict[type[Check], str]:
    """Every concrete check of the package, and its module; but for those that only ``kiln explain`` makes."""
    explain_only = {type(check) for check in TOOL_CHECKS}
    found: dict[type[Check], str] = {}
    for path in FOLDER.glob("*.py"):
        module = importlib.import_module(f"validation.checks.{path.stem}") if path.stem != "__init__" else package
        for value in vars(module).values():
            if (
                isinstance(value, type)
                and issubclass(value, Check)
                and not value.__abstractmethods__
                and value not in explain_only
            ):
                found[value] = value.__module__.rsplit(".", 1)[-1]
    return found


def test_the_list_holds_every_check_once() -> None:
    assert sorted(check.id for check in CHECKS) == sorted({cls.id for cls in classes()})
    assert len({check.id for check in CHECKS}) == len(CHECKS)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_check_says_what_it_is_why_by_whom_and_what_to_do(check: Check) -> None:
    subject, _, name = check.id.partition(".")
    assert subject.isidentifier()
    assert name.isidentifier()
    for text in (check.title, check.why, check.source, check.remedy, check.__doc__ or ""):
        assert len(text) > 5, check.id
    assert check.why.endswith(".")
    assert check.remedy.endswith(".")
    assert isinstance(check.fault_class, FaultClass)
    assert all(isinstance(kind, type) for kind in check.requires)


@pytest.mark.parametrize(("cls", "module"), classes().items(), ids=lambda value: getattr(value, "id", str(value)))
def test_a_check_has_rows_for_pass_trouble_and_unknown(cls: type[Check], module: str) -> None:
    path = Path(__file__).with_name(f"test_{module.removesuffix('_speed')}.py")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    tests = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tests)
    rows: list[tuple[Any, ...]] = getattr(tests, "ROWS", [])
    said = {text.split()[0] for row in rows if row[0] is cls for text in row[-1]}
    assert "PASS" in said, cls.id
    assert said & {"FAIL", "WARN"}, cls.id
    assert "UNKNOWN" in said, cls.id


def test_no_check_of_a_single_tool_has_the_id_of_another() -> None:
    ids = [check.id for check in (*CHECKS, *TOOL_CHECKS)]
    assert len(set(ids)) == len(ids)


def test_a_profile_makes_only_existing_checks_advisory_and_gives_its_reason() -> None:
    known = {check.id for check in CHECKS} | {"burnin.gemm", "burnin.bandwidth"}
    for name in catalog.types():
        profile = catalog.load(name)
        assert profile is not None
        assert set(profile.advisory) <= known, name
        assert all(len(reason) > 10 for reason in profile.advisory.values()), name


def test_no_shipped_profile_excuses_a_check_of_safety_but_where_the_board_is_hidden() -> None:
    safety = {check.id for check in CHECKS if check.safety}
    assert {"gpu.count", "gpu.lost", "kernel.xid", "ecc.uncorrected", "burnin.gemm", "burnin.copy"} <= safety
    for name in catalog.types():
        profile = catalog.load(name)
        assert profile is not None
        virtual = profile.gpu.board.endswith("Q")
        hidden = safety - {"gpu.count", "gpu.lost", "kernel.xid", "burnin.gemm"}
        without_ecc = {"ecc.uncorrected"} if "ecc.mode" in profile.advisory else set()  # it cannot count, and may fail
        allowed = hidden if virtual else {"fabric.state", "nvlink.links_active"} | without_ecc
        assert set(profile.advisory) & safety <= allowed, name


def test_what_could_not_be_seen_is_no_reason_to_replace_a_host() -> None:
    for check in CHECKS:
        unknown = check.finding(Verdict.UNKNOWN, "host", "said")
        assert "validate again" in unknown.remedy
        for reason in (Reason.NOT_APPLICABLE, Reason.COULD_NOT_LOOK, Reason.ABSENT):
            assert check.missing("GPU0", "value", Missing(reason)).remedy != check.remedy
        assert check.missing("GPU0", "value", Missing(Reason.FAULT)).remedy == check.remedy
