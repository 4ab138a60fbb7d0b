from __future__ import annotations

import json
from pathlib import Path

import pytest

from kiln.__main__ import main
from validation.evidence import AFTER_BURN_IN, Bundle, Item, Outcome


def write(folder: Path, host: str, *, complete: bool = True) -> None:
    item = Item("nvml", "NVML", Outcome.NOT_FOUND)
    Bundle(host, {"nvml": item}, complete=complete).write(folder)


def test_a_bundle_without_evidence_is_unknown_and_never_healthy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "gpu-1")
    assert main(["check", str(tmp_path), "--profile", "p5.48xlarge", "--json"]) == 3
    data = json.loads(capsys.readouterr().out)
    assert data["verdict"] == "UNKNOWN"
    assert data["hosts"][0]["host"] == "gpu-1"


def test_a_fault_that_showed_only_after_the_burn_in_is_found_offline_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quiet, died = "[    0.000000] Linux version 6.8\n", "[   90.1] NVRM: Xid (PCI:0000:53:00): 79, pid=1, lost\n"
    for folder, log in ((tmp_path, quiet), (tmp_path / AFTER_BURN_IN, quiet + died)):
        Bundle("gpu-1", {"kernel-log": Item("kernel-log", "dmesg", Outcome.OK, stdout=log, rc=0)}).write(folder)
    assert main(["check", str(tmp_path), "--profile", "p5.48xlarge", "--json"]) == 1
    (host,) = json.loads(capsys.readouterr().out)["hosts"]
    assert [f["verdict"] for f in host["findings"] if f["check"] == "kernel.xid"] == ["FAIL"]


def test_a_folder_of_bundles_is_judged_host_by_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "b", "gpu-2")
    write(tmp_path / "a", "gpu-1", complete=False)
    assert main(["check", str(tmp_path), "--profile", "p5.48xlarge", "--json"]) == 3
    hosts = json.loads(capsys.readouterr().out)["hosts"]
    assert [host["host"] for host in hosts] == ["gpu-1", "gpu-2"]
    assert [finding["check"] for finding in hosts[0]["findings"]] == ["evidence.complete"]


def test_an_unknown_profile_is_a_configuration_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "gpu-1")
    assert main(["check", str(tmp_path), "--profile", "p99.bogus"]) == 2
    assert "--profile: found p99.bogus" in capsys.readouterr().err


def test_more_efas_than_the_type_has_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "gpu-1")
    assert main(["check", str(tmp_path), "--profile", "g5.xlarge", "--efa", "4"]) == 2
    assert "efaCount: found 4" in capsys.readouterr().err


def test_a_folder_without_evidence_says_how_to_get_some(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path), "--profile", "p5.48xlarge"]) == 2
    assert "--keep-evidence" in capsys.readouterr().err


def test_a_broken_manifest_could_not_be_looked_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "manifest.json").write_text("{")
    assert main(["check", str(tmp_path), "--profile", "p5.48xlarge"]) == 3
    assert capsys.readouterr().out == ""


def test_what_was_noticed_online_is_told_offline_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items = {"nvml": Item("nvml", "NVML", Outcome.NOT_FOUND)}
    Bundle("gpu-1", items, notes=("the host's clock is 900 s behind this machine's",)).write(tmp_path)
    assert main(["check", str(tmp_path), "--profile", "p5.48xlarge", "--json"]) == 3
    (host,) = json.loads(capsys.readouterr().out)["hosts"]
    assert [(f["verdict"], f["required"]) for f in host["findings"] if f["check"] == "host.boot"] == [("WARN", False)]
