"""``kiln validate``, ``check`` and ``explain`` on simulated hosts: SSH, probe, checks and verdict are the real ones."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.system.conftest import Rack

pytestmark = pytest.mark.system

INSTANCE_TYPE = "g5.xlarge"


def verdict(done: subprocess.CompletedProcess[str]) -> tuple[int, str, dict[str, str]]:
    """Exit code, verdict, and the verdicts of the checks that are neither PASS nor NOT_APPLICABLE."""
    assert done.stdout, done.stderr
    data = json.loads(done.stdout)
    found = [finding for host in data["hosts"] for finding in host["findings"]]
    bad = {f["check"]: f["verdict"] for f in found if f["verdict"] not in ("PASS", "NOT_APPLICABLE")}
    return done.returncode, data["verdict"], bad


def test_a_good_host_is_0_and_its_evidence_comes_to_the_same_offline(rack: Rack) -> None:
    online = rack.validate("--json", "--keep-evidence", str(rack.folder / "evidence"))
    assert verdict(online) == (0, "PASS", {}), online.stdout + online.stderr
    root = str(rack.folder / "hosts")
    words = ["--profile", INSTANCE_TYPE, "--evidence-root", root, "--json"]
    offline = rack.kiln("check", str(rack.folder / "evidence"), *words)
    assert verdict(offline) == (0, "PASS", {})


def test_a_faulty_host_is_1_online_and_offline_and_names_the_check(rack: Rack) -> None:
    rack.host.inject("gpu-missing")
    online = verdict(rack.validate("--json", "--keep-evidence", str(rack.folder / "evidence")))
    assert online[:2] == (1, "FAIL")
    assert online[2]["gpu.count"] == "FAIL"
    words = ["--profile", INSTANCE_TYPE, "--evidence-root", str(rack.folder / "hosts"), "--json"]
    assert verdict(rack.kiln("check", str(rack.folder / "evidence"), *words)) == online


def test_a_kept_tool_output_is_explained(rack: Rack) -> None:
    rack.host.inject("xid-79")
    rack.validate("--keep-evidence", str(rack.folder / "evidence"))
    (log,) = (rack.folder / "evidence").rglob("kernel-log.txt")
    done = rack.kiln("explain", str(log))
    assert done.returncode == 1, done.stderr
    assert "Xid 79" in done.stdout


def test_evidence_read_below_another_root_than_allowed_is_fail(rack: Rack) -> None:
    rack.change(evidenceRoot=None)
    code, _, bad = verdict(rack.validate("--json"))
    assert (code, bad["host.evidence_root"]) == (1, "FAIL")


def test_another_machine_s_key_is_fail_and_nothing_is_gathered(rack: Rack, key_pair: Callable[[], Any]) -> None:
    rack.change(hostKey=key_pair().public)
    assert verdict(rack.validate("--json")) == (1, "FAIL", {"host.identity": "FAIL"})


def test_a_host_without_a_known_key_needs_an_explicit_yes(rack: Rack) -> None:
    rack.change(hostKey=None)
    refused = rack.validate("--json")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--accept-new" in refused.stderr
    assert rack.validate("--json", "--accept-new").returncode == 0


def test_a_host_that_does_not_answer_is_3_and_names_the_stage(rack: Rack) -> None:
    rack.host.inject("ssh-refused")
    done = rack.validate("--json", "--deadline", "3")
    assert verdict(done) == (3, "UNKNOWN", {"host.reachable": "UNKNOWN"})
    assert "stage 'reachable' not reached" in done.stdout


def test_a_quick_burn_in_runs_where_it_is_asked_for(rack: Rack) -> None:
    done = rack.validate("--json", "--burn-in", "quick")
    assert verdict(done) == (0, "PASS", {})
    assert json.loads(done.stdout)["hosts"][0]["burn_in"]["level"] == "quick"


def test_a_type_without_a_profile_is_3(rack: Rack) -> None:
    rack.change(instanceType="p99.bogus")
    code, said, _ = verdict(rack.validate("--json"))
    assert (code, said) == (3, "UNKNOWN")
