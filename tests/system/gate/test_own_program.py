"""``examples/own-program`` on hosts of the sandbox that another stack made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("gate-hosts")]


@pytest.fixture(scope="module")
def made(real_project: Path, cloud_environment: dict[str, str], make_stack: Any, cloud: Sandbox) -> Iterator[Any]:
    """A stack of Kiln's own program, whose host the example takes as one that exists."""
    stack = make_stack(real_project, "made", cloud_environment)
    stack.configure({**cloud.settings(), "image": "sandbox-ubuntu", "instanceType": "g5.xlarge", "burnIn": "none"})
    done = stack.up()
    assert done.code == 0, done.text
    yield stack
    assert stack.run("destroy", "--yes", "--skip-preview", "--stack", "made").code == 0


@pytest.fixture(scope="module")
def example(
    tmp_path_factory: pytest.TempPathFactory,
    repository: Path,
    made: Any,
    cloud: Sandbox,
    cloud_environment: dict[str, str],
    make_stack: Any,
) -> Any:
    folder = tmp_path_factory.mktemp("example")
    source = repository / "examples" / "own-program"
    text = (source / "Pulumi.yaml").read_text()
    (folder / "Pulumi.yaml").write_text(text.replace("../../plugins/kiln", str(repository / "plugins" / "kiln")))
    (folder / "__main__.py").write_text((source / "__main__.py").read_text())
    stack = make_stack(folder, "dev", cloud_environment)
    gate = next(item for item in made.export(secrets=True)["deployment"]["resources"] if item["urn"].endswith("::gate"))
    host = gate["inputs"]["hosts"][0]
    settings = cloud.settings()
    stack.configure(
        {
            "instanceType": "g5.xlarge",
            "port": settings["sshPort"],
            "evidenceRoot": settings["evidenceRoot"],
            "burnIn": "none",
        }
    )
    stack.configure_object("hosts", [{key: host[key] for key in ("name", "address", "hostKey")}])
    stack.configure_secret("privateKey", host["privateKey"]["plaintext"].encode().decode("unicode_escape").strip('"'))
    return stack


def test_a_program_of_ones_own_waits_for_good_hosts(example: Any, cloud: Sandbox) -> None:
    cloud.fault("node-0", "gpu-lost")
    done = example.up()
    assert done.code != 0
    assert "the gate is closed: FAIL" in done.text
    assert "Traceback" not in done.text
    assert example.healthy() is False
    assert "job-key" not in str(example.export())
    cloud.clear("node-0")
    done = example.up()
    assert done.code == 0, done.text
    assert example.healthy() is True
    assert example.outputs()["jobKey"].startswith("ssh-ed25519 ")
