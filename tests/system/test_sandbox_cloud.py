"""The emulated cloud under the real Pulumi CLI: a small program through its life, its accidents and its refusals."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import paramiko
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sandbox.client import Sandbox
from stacks.cli import pulumi_environment

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("sandbox-cloud")]

PATIENCE_S = 90.0
PROGRAM = Path(__file__).with_name("data") / "cloud_program.txt"


@dataclass(frozen=True)
class Key:
    private: str
    public: str


def new_key() -> Key:
    made = Ed25519PrivateKey.generate()
    private = made.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = made.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return Key(private.decode(), public.decode())


LOGIN, HOST_KEY = new_key(), new_key()
INDENTED = HOST_KEY.private.replace("\n", "\n    ")
USER_DATA = f"#cloud-config\nssh_keys:\n  ed25519_private: |\n    {INDENTED}\n"


@dataclass
class Project:
    """A Pulumi project of its own over the small program; ``wanted`` is what the program reads."""

    folder: Path
    environment: dict[str, str]
    wanted: dict[str, Any] = field(default_factory=dict)

    def want(self, **changes: Any) -> None:
        self.wanted |= changes
        (self.folder / "wanted.json").write_text(json.dumps(self.wanted))

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["pulumi", "--non-interactive", "--color=never", *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str, code: int = 0) -> str:
        process = self.start(*arguments)
        text, _ = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode == 0) == (code == 0), text
        assert "Traceback" not in text, text
        return text

    def up(self, code: int = 0) -> str:
        return self.run("up", "--yes", "--skip-preview", code=code)

    def state(self) -> dict[str, Any]:
        """The stack's last checkpoint."""
        text = (self.folder / "state/.pulumi/stacks/emulated/dev.json").read_text()
        latest: dict[str, Any] = json.loads(text)["checkpoint"]["latest"]
        return latest

    def resources(self, kind: str) -> list[dict[str, Any]]:
        return [item for item in self.state().get("resources", []) if item["type"] == kind]

    def output(self, name: str) -> Any:
        return self.resources("pulumi:pulumi:Stack")[0]["outputs"][name]

    def planned(self) -> dict[str, str]:
        """What a preview would do, by resource name; ``same`` is left out."""
        text = self.run("preview", "--json")
        steps = json.loads(text[text.index("{") :])["steps"]
        return {step["urn"].split("::")[-1]: step["op"] for step in steps if step["op"] not in ("same", "read")}


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    running = Sandbox(tmp_path_factory.mktemp("sandbox"))
    running.start()
    yield running
    assert running.stop()


@pytest.fixture
def project(tmp_path: Path, sandbox: Sandbox) -> Iterator[Project]:
    made = new_project(tmp_path, sandbox.env())
    yield made
    made.run("destroy", "--yes", "--skip-preview")
    sandbox.clear_cloud_faults()
    assert sandbox.resources() == {}


def new_project(folder: Path, variables: dict[str, str]) -> Project:
    (folder / "state").mkdir()
    (folder / "Pulumi.yaml").write_text("name: emulated\nruntime: python\n")
    (folder / "__main__.py").write_text(PROGRAM.read_text())
    environment = pulumi_environment(
        {
            **os.environ,
            **variables,
            "PULUMI_BACKEND_URL": f"file://{folder / 'state'}",
            "PULUMI_HOME": str(folder / "pulumi"),
            "PULUMI_CONFIG_PASSPHRASE": "test",
        }
    )
    made = Project(folder, environment)
    made.want(
        hosts=["one"],
        type="p5.48xlarge",
        hops=1,
        run="1",
        more={},
        elastic=False,
        user_data=USER_DATA,
        login=LOGIN.public,
    )
    made.run("stack", "init", "dev")
    return made


def boot_id(sandbox: Sandbox, instance_id: str) -> str:
    return (sandbox.home / "hosts" / instance_id / "root/proc/sys/kernel/random/boot_id").read_text()


def until(condition: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def plugins_of(sandbox: Sandbox) -> list[str]:
    """The provider plugins that run against this sandbox, by process id."""
    marker = f"KILN_SANDBOX_HOME={sandbox.home}".encode()
    return [
        folder.name
        for folder in Path("/proc").glob("[0-9]*")
        if b"pulumi-resource-aws" in _of_process(folder / "cmdline") and marker in _of_process(folder / "environ")
    ]


def _of_process(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:  # it ended meanwhile, or is not ours to look at
        return b""


def test_a_stack_lives_as_on_the_real_provider_and_leaves_nothing(project: Project, sandbox: Sandbox) -> None:
    project.up()
    (launched,) = sandbox.instances()
    assert len(launched["nics"]) == 33
    assert sum(nic["type"] == "efa-only" for nic in launched["nics"]) == launched["efa_count"] == 32
    assert (launched["root"]["iops"], launched["root"]["throughput"]) == (6000, 500)
    assert launched["metadata"]["httpTokens"] == "required"
    assert launched["placement_group"].startswith("cluster-")
    assert project.output("addresses") == [launched["address"]]
    assert project.planned() == {}

    first, booted = launched["id"], boot_id(sandbox, launched["id"])
    project.want(run="2", user_data=USER_DATA + "runcmd: []\n")
    assert project.planned() == {"one": "update"}
    project.up()
    assert project.output("ids") == [first]
    assert boot_id(sandbox, first) != booted

    project.want(hops=2)
    assert project.planned()["one"] in ("replace", "create-replacement")
    project.up()
    assert project.output("ids") != [first]
    assert [item["id"] for item in sandbox.instances()] == project.output("ids")
    assert not (sandbox.home / "hosts" / first).exists()

    project.run("destroy", "--yes", "--skip-preview")
    assert sandbox.resources() == {}
    assert sandbox.hosts() == []
    assert list((sandbox.home / "hosts").iterdir()) == []


def test_a_host_answers_with_its_own_key_at_both_its_addresses(project: Project, sandbox: Sandbox) -> None:
    project.want(elastic=True)
    project.up()
    addresses = [*project.output("addresses"), project.output("elastic")]
    assert [address.split(".")[1] for address in addresses] == ["64", "65"]
    for address in addresses:
        with paramiko.SSHClient() as client:
            client.get_host_keys().add(
                f"[{address}]:{sandbox.endpoint().ssh_port}",
                "ssh-ed25519",
                paramiko.Ed25519Key(data=base64.b64decode(HOST_KEY.public.split()[1])),
            )
            client.set_missing_host_key_policy(paramiko.RejectPolicy())
            client.connect(
                address,
                sandbox.endpoint().ssh_port,
                "ubuntu",
                pkey=_private(LOGIN.private),
                allow_agent=False,
                look_for_keys=False,
                timeout=20,
            )
            _, out, _ = client.exec_command("nvidia-smi -L", timeout=30)
            assert out.read().decode().count("H100") == 8


def _private(text: str) -> paramiko.PKey:
    return paramiko.Ed25519Key.from_private_key(io.StringIO(text))


def test_what_happens_behind_pulumis_back_is_seen_and_put_right(project: Project, sandbox: Sandbox) -> None:
    project.want(hosts=["one", "two"])
    project.up()
    gone, drifted = project.output("ids")
    cloud = boto3.client(
        "ec2",
        region_name="us-east-1",
        endpoint_url=sandbox.endpoint().moto,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    cloud.create_tags(Resources=[drifted], Tags=[{"Key": "run", "Value": "drifted"}])
    sandbox.cloud_fault("vanish", "one")
    assert [item["name"] for item in sandbox.hosts()] == ["two"]
    project.run("refresh", "--yes", "--skip-preview")
    assert [item["id"] for item in project.resources("aws:ec2/instance:Instance")] == [drifted]
    assert project.planned() == {"one": "create", "two": "update"}
    project.up()
    assert project.output("ids")[0] != gone
    tags = cloud.describe_tags(Filters=[{"Name": "resource-id", "Values": [drifted]}])["Tags"]
    assert {tag["Key"]: tag["Value"] for tag in tags}["run"] == "1"


def test_no_capacity_is_said_in_the_words_of_aws_and_the_next_try_succeeds(project: Project, sandbox: Sandbox) -> None:
    project.want(hosts=["one", "two"])
    sandbox.cloud_fault("no-capacity", "two", 1)
    text = project.up(code=1)
    assert "operation error EC2: RunInstances, api error InsufficientInstanceCapacity: We currently do not" in text
    assert [item["name"] for item in sandbox.instances()] == ["one"]
    project.up()
    assert sorted(item["name"] for item in sandbox.instances()) == ["one", "two"]


def test_what_aws_would_refuse_is_refused_in_one_line(project: Project, sandbox: Sandbox) -> None:
    wanted = dict(project.wanted)
    for change, words in (
        ({"type": "p99.bogus"}, "api error InvalidParameterValue: Invalid value 'p99.bogus' for InstanceType."),
        ({"type": "g5.xlarge"}, "g5.xlarge has 1 network cards"),
        ({"more": {"subnet_id": "subnet-1"}}, "Network interfaces and an instance-level subnet ID"),
        ({"more": {"cpu_options": {"core_count": 2}}}, "cpuOptions"),
        ({"hops": 65}, "HttpPutResponseHopLimit 65 must be between 1 and 64"),
    ):
        project.want(**{**wanted, **change})
        text = project.up(code=1)
        assert any(words in line for line in text.splitlines()), text
    assert sandbox.instances() == []


def test_an_interrupted_launch_stays_in_the_state_and_is_taken_up_again(project: Project, sandbox: Sandbox) -> None:
    sandbox.cloud_fault("slow-create", "one", 60)
    process = project.start("up", "--yes", "--skip-preview")
    until(lambda: bool(sandbox.instances()))
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    text, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode != 0
    assert time.monotonic() - started < 10, "a cancel must not wait for the launch"
    (kept,) = project.resources("aws:ec2/instance:Instance")
    assert kept["id"] == sandbox.instances()[0]["id"]
    assert "cancelled while waiting" in kept["initErrors"][0], text
    sandbox.clear_cloud_faults()
    project.up()
    assert project.output("ids") == [kept["id"]]


def test_the_plugin_ends_when_its_engine_is_killed(tmp_path: Path) -> None:
    own = Sandbox(tmp_path / "sandbox")  # of its own: what a killed engine had no time to record is left behind
    own.start()
    try:
        own.cloud_fault("slow-create", "one", 60)
        process = new_project(tmp_path, own.env()).start("up", "--yes", "--skip-preview")
        until(lambda: bool(own.instances()))
        assert plugins_of(own)
        process.kill()
        process.communicate(timeout=PATIENCE_S)
        until(lambda: not plugins_of(own), 10)
    finally:
        own.stop()


def test_an_existing_resource_is_imported_and_a_missing_one_is_not(project: Project) -> None:
    project.up()
    (host,) = project.resources("aws:ec2/instance:Instance")
    options = ("--yes", "--protect=false", "--generate-code=false", "--skip-preview", host["type"], "one")
    project.run("state", "delete", "--yes", "--force", host["urn"])
    assert "does not exist" in project.run("import", *options, "i-0123456789abcdef0", code=1)
    project.run("import", *options, host["id"])
    (again,) = project.resources("aws:ec2/instance:Instance")
    for name in ("arn", "ami", "instanceType", "privateIp", "rootBlockDevice", "metadataOptions", "tags"):
        assert again["outputs"][name] == host["outputs"][name]
    assert again["inputs"]["launchTemplate"] == host["inputs"]["launchTemplate"]
    project.up()  # the program takes it over, and with it what it depends on
    assert project.output("ids") == [host["id"]]


def test_a_key_pair_with_a_fixed_name_is_deleted_before_it_is_made_again(project: Project) -> None:
    project.up()
    project.want(login=new_key().public)
    text = project.up()
    lines = [line for line in text.splitlines() if re.search(r"KeyPair.* login .*(deleted|created)", line)]
    assert [bool(re.search("deleted", line)) for line in lines] == [True, False], text


def test_without_a_sandbox_there_is_one_clear_line(tmp_path: Path) -> None:
    home = tmp_path / "nothing"
    plugin = Path(__file__).resolve().parents[2] / "sandbox" / "bin"
    variables = {
        "PATH": f"{plugin}{os.pathsep}{os.environ['PATH']}",
        "KILN_SANDBOX_HOME": str(home),
        "AWS_REGION": "us-east-1",
    }
    project = new_project(tmp_path, variables)
    text = project.run("preview", code=1)
    lines = [line for line in text.splitlines() if str(home) in line]
    assert lines
    assert all("start it with `kiln sandbox start`" in line for line in lines), text
