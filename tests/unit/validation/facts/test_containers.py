"""What container runtimes and NVIDIA's toolkit say: devices, specifications, versions, runtimes, errors."""

from __future__ import annotations

import json

import pytest

from profiles.errors import ParseError
from validation.facts import container_error, container_gpus, docker_info

LIST = """time="2026-09-03T18:39:19Z" level=info msg="Found 5 CDI devices"
nvidia.com/gpu=0
nvidia.com/gpu=1
nvidia.com/gpu=GPU-5d1a0000-0000-4000-8000-000000000001
nvidia.com/gpu=1:0
nvidia.com/gpu=all
"""
DEVICES = LIST.partition("\n")[2]
EDITS = """containerEdits:
    mounts:
        - hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05
          containerPath: /usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05
"""
NAMES = """devices:
    - name: "0"
      containerEdits:
        deviceNodes:
            - path: /dev/nvidia0
    - name: all
      containerEdits: {}
"""


@pytest.mark.parametrize(
    "text",
    [
        LIST,
        DEVICES,
        LIST.replace(
            'time="2026-09-03T18:39:19Z" level=info msg="Found 5 CDI devices"',
            "\x1b[36mINFO\x1b[0m[0000] Found 5 CDI devices   ",
        ),
    ],
    ids=["both streams", "standard output", "a terminal"],
)
def test_the_devices_are_read_whoever_caught_the_tools_own_words(text: str) -> None:
    found = container_gpus.parse(text)
    assert container_gpus.is_it(text)
    assert (found.indices, len(found.gpus)) == ((0, 1), 5)


def test_devices_of_other_vendors_are_counted_and_are_no_gpus_of_nvidias() -> None:
    text = 'level=info msg="Found 4 CDI devices"\namd.com/gpu=0\nnvidia.com/imex-channel=0\n'
    text += "k8s.device-plugin.nvidia.com/gpu=gpu3\nnvidia.com/gds=all\n"
    found = container_gpus.parse(text)
    assert (len(found.devices), found.gpus, found.indices) == (4, ("k8s.device-plugin.nvidia.com/gpu=gpu3",), (3,))


def test_a_specification_that_the_tool_could_not_read_is_told() -> None:
    text = 'time="x" level=warning msg="The following registry errors were reported:"\n'
    text += 'time="x" level=warning msg="/etc/cdi/nvidia.yaml: [failed to load CDI Spec invalid version \\"\\"]"\n'
    found = container_gpus.parse(text + 'time="x" level=info msg="Found 0 CDI devices"\n')
    assert (found.devices, found.broken) == (
        (),
        ('/etc/cdi/nvidia.yaml: failed to load CDI Spec invalid version \\"\\"',),
    )


@pytest.mark.parametrize(
    "text",
    [
        f"---\ncdiVersion: 0.5.0\nkind: nvidia.com/gpu\n{NAMES}{EDITS}",
        f"---\ncdiVersion: 0.5.0\n{EDITS}{NAMES}kind: nvidia.com/gpu\n",
        json.dumps(
            {
                "cdiVersion": "0.5.0",
                "kind": "nvidia.com/gpu",
                "devices": [{"name": "0"}, {"name": "all"}],
                "containerEdits": {"mounts": [{"hostPath": "/usr/lib64/libnvidia-ml.so.580.95.05"}]},
            }
        ),
    ],
    ids=["1.20", "1.17", "json"],
)
def test_a_specification_names_its_devices_and_its_driver(text: str) -> None:
    assert container_gpus.is_it(text)
    found = container_gpus.parse(text)
    assert (found.devices, found.driver) == (("nvidia.com/gpu=0", "nvidia.com/gpu=all"), "580.95.05")


@pytest.mark.parametrize(
    "text",
    [
        "",
        LIST[:-18],
        f"cdiVersion: 0.5.0\nkind: nvidia.com/gpu\n{NAMES}",
        f"cdiVersion: 0.5.0\n{EDITS}{NAMES}",
        f"cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n    - name: 0\n{EDITS}",
        "cdiVersion: 0.5.0\nkind: [\n",
    ],
    ids=["nothing", "a line is gone", "the end is gone", "the kind is gone", "no name", "cut in a list"],
)
def test_half_a_list_and_half_a_specification_are_refused(text: str) -> None:
    with pytest.raises(ParseError):
        container_gpus.parse(text)


def test_the_toolkits_version_is_read() -> None:
    whole = container_gpus.parse_version("NVIDIA Container Toolkit CLI version 1.18.0-rc.2\ncommit: 5d1a00c\n")
    assert (whole.version, whole.commit) == ("1.18.0-rc.2", "5d1a00c")
    assert container_gpus.parse_version("NVIDIA Container Toolkit CLI version unknown\n").version == "unknown"
    with pytest.raises(ParseError):
        container_gpus.parse_version("nvidia-ctk: command not found\n")


ERRORS = [
    ("no-runtime", 'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].'),
    (
        "no-runtime",
        'Error response from daemon: could not select device driver "nvidia" with capabilities: [[utility gpu]]',
    ),
    ("no-runtime", "docker: Error response from daemon: unknown or invalid runtime name: nvidia."),
    ("no-runtime", "docker: Error response from daemon: Unknown runtime specified nvidia."),
    ("no-cdi", "Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all"),
    ("no-cdi", "CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=all: unknown"),
    (
        "driver-too-old",
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=13.0: unknown.",
    ),
    ("no-such-gpu", "nvidia-container-cli: device error: GPU-5d1a: unknown device: unknown"),
    ("not-given", 'exec: "nvidia-smi": executable file not found in $PATH: unknown.'),
    ("no-socket", "failed to fulfil mount request: open /run/nvidia-persistenced/socket: no such file or directory"),
    ("library", "nvidia-container-cli: ldcache error: process /sbin/ldconfig terminated with signal 9: unknown."),
    (
        "library",
        "nvidia-container-cli: mount error: failed to add device rules: unable to find any filters",
    ),
]


@pytest.mark.parametrize(("kind", "line"), ERRORS)
def test_why_a_container_got_no_gpu_is_told_by_the_words(kind: str, line: str) -> None:
    error = container_error.parse(f"Unable to find image locally\n{line}\n")
    assert error.kind == kind
    assert container_error.is_it(line)


def test_an_error_that_names_nothing_of_gpus_is_none() -> None:
    text = "docker: Error response from daemon: Conflict. The container name is already in use.\n"
    assert not container_error.is_it(text)
    with pytest.raises(ParseError):
        container_error.parse(text)


INFO = """Server:
 Server Version: 28.3.3
 CDI spec directories:
  /etc/cdi
 Discovered Devices:
  cdi: nvidia.com/gpu=0
  cdi: nvidia.com/gpu=all
 Runtimes: io.containerd.runc.v2 nvidia runc
 Default Runtime: runc
"""


def test_docker_names_its_runtimes_and_the_devices_that_it_found() -> None:
    found = docker_info.parse(INFO)
    assert docker_info.is_it(INFO)
    assert (found.runtimes, found.default) == (("io.containerd.runc.v2", "nvidia", "runc"), "runc")
    assert found.devices == ("nvidia.com/gpu=0", "nvidia.com/gpu=all")
    assert docker_info.parse(" Runtimes: nvidia runc\n").default == ""


def test_docker_as_json_says_the_same() -> None:
    text = json.dumps(
        {
            "Runtimes": {"nvidia": {"path": "nvidia-container-runtime"}, "runc": {"path": "runc"}},
            "DefaultRuntime": "nvidia",
            "DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=0"}],
        }
    )
    assert docker_info.is_it(text)
    assert docker_info.parse(text) == docker_info.DockerInfo(("nvidia", "runc"), "nvidia", ("nvidia.com/gpu=0",))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "Cannot connect to the Docker daemon at unix:///run/docker.sock. Is it running?",
            "Cannot connect",
        ),
        ("permission denied while trying to connect to the Docker daemon socket", "permission denied"),
        ('{"Runtimes": null, "DefaultRuntime": "runc"}', "not a list of runtimes"),
        ('{"Runtimes": {"runc": {}}, "DefaultRuntime": "ru', "not a whole JSON document"),
        ("Server Version: 28.3.3\n", "no line 'Runtimes:'"),
    ],
)
def test_a_docker_that_did_not_answer_was_not_looked_at(text: str, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        docker_info.parse(text)
