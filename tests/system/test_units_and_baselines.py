"""Bad units, archives of evidence and drafted profiles, on a simulated host over SSH."""

from __future__ import annotations

import json
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from validation.unit_file import UnitFile

if TYPE_CHECKING:
    from tests.system.conftest import Rack

pytestmark = pytest.mark.system

# What the runner itself finds, beside the judge: who answered, and that a burn-in was not worth its time.
RUNNERS_OWN = {"host.identity", "burnin.run"}


def findings(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert done.stdout, done.stderr
    return [finding for host in json.loads(done.stdout)["hosts"] for finding in host["findings"]]


def judged(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [finding for finding in findings(done) if finding["check"] not in RUNNERS_OWN]


def bad_unit(done: subprocess.CompletedProcess[str]) -> tuple[str, str]:
    (found,) = [finding for finding in findings(done) if finding["check"] == "gpu.known_bad"]
    return found["verdict"], found["message"]


def offline(rack: Rack, source: str) -> subprocess.CompletedProcess[str]:
    root = str(rack.folder / "hosts")
    return rack.kiln("check", source, "--profile", "g5.xlarge", "--evidence-root", root, "--json")


def test_a_rejected_gpu_is_known_again_until_it_is_forgotten(rack: Rack) -> None:
    memory = rack.folder / "units.json"
    words = ("--bad-units", str(memory), "--json", "--keep-evidence", str(rack.folder / "evidence"))
    rack.host.inject("xid-79")
    assert rack.validate(*words).returncode == 1
    kept = UnitFile(memory).read()
    assert {(unit.bad, unit.host) for unit in kept} == {(True, "gpu-a")}
    assert len({unit.uuid for unit in kept}) == 1
    unit = kept[0]

    rack.host.clear()
    rack.host.reboot()
    same_host = rack.validate(*words)
    assert (same_host.returncode, bad_unit(same_host)[0]) == (0, "WARN")

    memory.write_text(memory.read_text().replace(unit.instance_id, "i-another").replace('"gpu-a"', '"node-7"'))
    returned = rack.validate(*words)
    assert returned.returncode == 1
    assert bad_unit(returned) == (
        "FAIL",
        f"{unit.uuid} was rejected on {unit.date} on host node-7 for {unit.check}: the provider returned the same unit",
    )
    assert judged(offline(rack, str(rack.folder / "evidence"))) == judged(returned)

    assert rack.kiln("units", "forget", unit.uuid, "--bad-units", str(memory)).returncode == 0
    forgiven = rack.validate(*words)
    assert (forgiven.returncode, bad_unit(forgiven)[0]) == (0, "NOT_APPLICABLE")
    assert judged(offline(rack, str(rack.folder / "evidence"))) == judged(forgiven)


def test_a_memory_that_cannot_be_read_keeps_the_gate_shut_and_names_the_file(rack: Rack) -> None:
    (rack.folder / "units.json").write_text("{")
    done = rack.validate("--bad-units", str(rack.folder / "units.json"), "--json")
    assert done.returncode == 3
    verdict, message = bad_unit(done)
    assert verdict == "UNKNOWN"
    assert str(rack.folder / "units.json") in message


@pytest.mark.parametrize("fault", ["", "corrupt-gemm", "gpu-missing"])
def test_an_archive_of_the_evidence_comes_to_the_same_findings_offline(rack: Rack, fault: str) -> None:
    if fault:
        rack.host.inject(fault)
    folder = rack.folder / "evidence"
    online = rack.validate("--json", "--burn-in", "quick", "--keep-evidence", str(folder))
    archive = rack.folder / "evidence.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, arcname="evidence")
    from_archive, from_folder = offline(rack, str(archive)), offline(rack, str(folder))
    assert from_archive.returncode == from_folder.returncode == online.returncode == (1 if fault else 0)
    assert judged(from_archive) == judged(from_folder)
    # Online, a host that fails is not burnt in, and its burn-in checks are left out; offline they do not apply.
    ours = [f for f in judged(from_archive) if fault != "gpu-missing" or not f["check"].startswith("burnin.")]
    assert ours == judged(online)


def test_a_profile_is_drafted_from_a_good_host_reviewed_and_used(rack: Rack, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    rack.change(instanceType="my.box")
    unknown = rack.validate("--json")
    assert unknown.returncode == 3
    assert "kiln baseline record --hosts inventory.yaml --host NAME --type my.box" in unknown.stdout

    words = ["--hosts", str(rack.inventory), "--host", "gpu-a", "--type", "my.box", "-o", str(own / "my.box.yaml")]
    recorded = rack.kiln("baseline", "record", *words)
    assert recorded.returncode == 0, recorded.stderr
    draft = rack.validate("--json", "--profiles", str(own))
    assert draft.returncode == 3
    assert [f["check"] for f in findings(draft) if f["verdict"] == "UNKNOWN"] == ["host.profile"]

    text = (own / "my.box.yaml").read_text()
    (own / "my.box.yaml").write_text(text.replace("reviewed: false", "reviewed: true"))
    good = rack.validate("--json", "--profiles", str(own))
    assert good.returncode == 0, good.stdout
    rack.host.inject("gpu-missing")
    assert rack.validate("--json", "--profiles", str(own)).returncode == 1


def test_a_faulty_host_is_no_baseline(rack: Rack) -> None:
    rack.host.inject("xid-79")
    done = rack.kiln("baseline", "record", "--hosts", str(rack.inventory), "--host", "gpu-a", "--type", "my.box")
    assert (done.returncode, done.stdout) == (1, "")
    assert "kernel.xid" in done.stderr
