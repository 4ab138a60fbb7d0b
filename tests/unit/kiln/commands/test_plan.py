from __future__ import annotations

import json
from pathlib import Path

import pytest

from kiln.__main__ import main
from kiln.commands import plan as command
from kiln.engine import Engine

AWS = {
    "kiln:instanceType": "p5.48xlarge",
    "kiln:count": "2",
    "kiln:image": "sandbox-ubuntu",
    "kiln:efaCount": "32",
    "aws:region": "us-east-1",
}
STATIC = {
    "kiln:provider": "static",
    "kiln:sshPrivateKey": "[secret]",
    "kiln:inventory": '[{"name": "gpu-1", "address": "10.0.0.1", "instanceType": "g5.xlarge", "acceptNew": true}]',
}


class FakeEngine(Engine):
    settings: dict[str, str] = {}

    def config(self, stack: str) -> dict[str, str]:
        return self.settings


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, repository: Path) -> dict[str, str]:
    """The stack's configuration: fill it."""
    found: dict[str, str] = {}
    monkeypatch.setattr(FakeEngine, "settings", found)
    monkeypatch.setattr(command, "open_engine", lambda _: FakeEngine(Path("pulumi"), repository, {}))
    return found


def test_a_plan_says_what_would_be_made(settings: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    settings.update(AWS)
    assert main(["plan", "dev"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("2 x p5.48xlarge in us-east-1a, image sandbox-ubuntu\n  node-0\n  node-1\n")
    assert "network: 33 interfaces a host, 32 of them EFA\n" in text
    assert "cluster placement group: yes" in text


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "p5.48xlarge: 8 x NVIDIA H100 80GB HBM3; every check counts"),
        (
            {"kiln:instanceType": "g7.2xlarge", "kiln:efaCount": "0", "kiln:burnIn": "none"},
            (
                "g7.2xlarge: 1 x NVIDIA RTX PRO 4500 Blackwell Server Edition; these only warn, docs/instance-types.md "
                "says why: numa.affinity, nvlink.links_active, pcie.width"
            ),
        ),
    ],
)
def test_a_plan_says_what_a_host_is_judged_as_and_what_only_warns(
    settings: dict[str, str], changes: dict[str, str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.update({**AWS, **changes})
    assert main(["plan", "dev"]) == 0
    assert f"\n{line}\n" in capsys.readouterr().out
    assert main(["plan", "dev", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["advisory"].values()
    assert set(told) == set(line.partition("says why: ")[2].split(", ")) - {""}


def test_a_static_plan_lists_the_hosts_there_are(settings: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    settings.update(STATIC)
    assert main(["plan", "dev"]) == 0
    assert "1 hosts that exist already:\n  gpu-1  g5.xlarge  10.0.0.1\n" in capsys.readouterr().out


@pytest.mark.parametrize("config", [AWS, STATIC], ids=["aws", "static"])
def test_json_is_one_document_without_the_private_key(
    settings: dict[str, str], config: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    settings.update(config)
    assert main(["plan", "dev", "--json"]) == 0
    text = capsys.readouterr().out
    data = json.loads(text)
    assert data["schema"] == "kiln/plan/v1"
    assert len(data["hosts"]) + len(data["inventory"]) in (1, 2)
    assert "sshPrivateKey" not in text


def test_everything_wrong_is_told_at_once_and_is_2(
    settings: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    settings.update({**AWS, "kiln:count": "0", "kiln:nonsense": "1"})
    assert main(["plan", "dev"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "count: found 0" in captured.err
    assert "nonsense: found a key that does not exist" in captured.err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kiln:instanceType": "p99.bogus"}, "instanceType: found 'p99.bogus'"),
        ({"kiln:count": "-1"}, "count: found -1"),
        ({"kiln:rootVolume": '{"sizeGib": -1}'}, "rootVolume.sizeGib: found -1"),
        ({"kiln:rootVolume": '{"sizeGib": 10, "iops": 16000}'}, "rootVolume.iops: found 16000"),
        ({"kiln:rootVolume": '{"size": 10}'}, "rootVolume.size: found a key that does not exist"),
        ({"kiln:instanceType": "g5.xlarge", "kiln:efaCount": "1"}, "efaCount: found 1"),
        ({"kiln:efaCount": "many"}, "efaCount: found 'many'; expected a whole number"),
        ({"kiln:softwareProfile": "bogus"}, "softwareProfile: found 'bogus'"),
        ({"kiln:image": "bogus"}, "image: found 'bogus'"),
        ({"kiln:provider": "static"}, "inventory: found"),
        ({"kiln:provider": "azure"}, "provider: found 'azure'; expected one of aws, static"),
    ],
)
def test_a_wrong_setting_is_one_line_by_its_path(
    settings: dict[str, str], changes: dict[str, str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.update({**AWS, **changes})
    assert main(["plan", "dev"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"\n  - {message}" in captured.err


def test_a_program_of_someone_else_has_no_plan_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: other\nruntime: python\n")
    monkeypatch.setattr(command, "open_engine", lambda _: FakeEngine(Path("pulumi"), tmp_path, {}))
    assert main(["plan", "dev"]) == 2
    assert "not Kiln's own program" in capsys.readouterr().err
