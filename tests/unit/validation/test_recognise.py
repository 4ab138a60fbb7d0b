"""Every format has a name of its own, and none takes another's text."""

from __future__ import annotations

import contextlib

import pytest

from profiles.errors import ParseError
from validation.recognise import KINDS, by_name, names, recognise

TEXTS = {
    "nvml": '{"device_count": 0, "devices": []}',
    "dcgm-diag": '{"DCGM Diagnostic": {"test_categories": []}}',
    "oci-health": '[{"tests": {}, "final_result": "pass"}]',
    "lsblk": '{"blockdevices": []}',
    "fio": '{"fio version": "fio-3.28", "jobs": []}',
    "stress-ng": "stress-ng: info:  [12] dispatching hogs: 8 cpu\n",
    "nvidia-ctk": 'time="x" level=info msg="Found 9 CDI devices"\n',
    "dcgmi-nvlink": "GPUs:\n    gpuId 0:\n        U U\n",
    "lscpu": "  NUMA node0 CPU(s):      0-71\n",
    "nvidia-smi-q-x": "<nvidia_smi_log>",
    "nvbandwidth": "nvbandwidth Version: v0.8\n",
    "nccl-tests": "# nThread 1 nGpus 8 minBytes 8\n",
    "gpu-burn": "10.0%  proc'd: 1 (5 Gflop/s)   errors: 0   temps: 30 C\r",
    "gpu-fryer": "  GPU #0:  56263 Gflops/s (min: 1, max: 2)\n",
    "dcgm-health": "| Overall Health            | Healthy  |\n",
    "nvidia-smi-q": "==============NVSMI LOG==============\n",
    "vgpu-license": "    vGPU Software Licensed Product\n",
    "nvidia-smi": "| NVIDIA-SMI 580.1   Driver Version: 580.1  CUDA Version: 13.0 |\n",
    "nvidia-smi-version": "NVIDIA-SMI version  : 590.48.01\n",
    "topo-p2p": "\tGPU0\tGPU1\n GPU0\tX\tOK\n",
    "topo-m": "\tGPU0\tGPU1\nGPU0\t X \tNV18\n",
    "nvlink-e": "GPU 0: NVIDIA H100 (UUID: GPU-0)\n\t Link 0: Replay Errors: 0\n",
    "nvlink-s": "GPU 0: NVIDIA H100 (UUID: GPU-0)\n\t Link 0: <inactive>\n",
    "nvidia-smi-l": "GPU 0: NVIDIA H100 (UUID: GPU-0)\n",
    "kernel-module": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.86.10\n",
    "nvidia-smi-apps": "pid, process_name, used_gpu_memory [MiB]\n",
    "nvidia-smi-pages": "gpu_uuid, retired_pages.address, retired_pages.cause\n",
    "nvidia-smi-csv": "index, name, memory.total [MiB]\n",
    "fi-info": "provider: efa\n",
    "ibv-devinfo": "hca_id:\tefa_0\n",
    "ibstatus": "Infiniband device 'mlx5_0' port 1 status:\n",
    "ibstat": "CA 'mlx5_0'\n",
    "rdma-link": "link rdmap0/1 state ACTIVE\n",
    "ibdev2netdev": "mlx5_0 port 1 ==> ib0 (Up)\n",
    "rdma-counters": "link mlx5_0/1 rx_write_requests 8 out_of_buffer 0\n",
    "eadm": "Query kernel driver version: 0.2.38\n",
    "sysfs-numa": "/sys/devices/system/node/node0/cpulist:0\n",
    "sysfs-pcie": "/sys/bus/pci/devices/0000:53:00.0/vendor:0x10de\n",
    "numactl": "available: 1 nodes (0)\n",
    "mdadm": "/dev/md0:\n        Raid Level : raid1\n",
    "mdstat": "Personalities : [raid0]\n",
    "nvcc": "nvcc: NVIDIA (R) Cuda compiler driver\n",
    "cuda-version-files": "/usr/local/cuda/version.json:{}\n",
    "systemctl": "Id=x\nLoadState=loaded\n",
    "docker-info": " Runtimes: nvidia runc\n Default Runtime: runc\n",
    "container-error": 'could not select device driver "" with capabilities: [[gpu]].\n',
    "nvidia-ctk-version": "NVIDIA Container Toolkit CLI version 1.17.8\n",
    "lspci": "0000:07:00.0 VGA compatible controller [0300]: NVIDIA [10de:1db7]\n",
    "kernel-log": "[    0.000000] Linux version 6.8\n",
    "driver-error": "No devices were found\n",
}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("    Remapped Rows\n        Correctable Error  : 0\n        Pending            : Yes\n", "nvidia-smi-q"),
        ("ECC Errors\n    Volatile\n        Total : 0\n", "nvidia-smi-q"),
        ("| MIG devices:                  |\n|  1    3   0   0  |  14366MiB / 19968MiB |\n", "nvidia-smi"),
        ('Field "compute_cap" is not a valid field to query.\n', "nvidia-smi-csv"),
        ("GPU 0: NVIDIA L4 (UUID: [removed])\n", "nvidia-smi-l"),
    ],
)
def test_part_of_an_output_is_of_the_tool_that_prints_the_whole(text: str, name: str) -> None:
    kind = recognise(text)
    assert kind is not None
    assert kind.name == name
    with pytest.raises(ParseError) if name != "nvidia-smi-l" else contextlib.nullcontext():
        kind.parse(text)


@pytest.mark.parametrize("below", ["NVLE: disabled", "Link 0, P2P is supported: true", "C2C Link 0: 44.712 GB/s"])
def test_what_other_commands_print_below_a_gpu_is_no_list(below: str) -> None:
    assert recognise(f"GPU 0: NVIDIA GB200 (UUID: GPU-0)\n\t {below}\n") is None


def test_a_container_that_got_no_gpu_is_what_a_text_is_about_whatever_docker_says_of_itself() -> None:
    info = "Server:\n Runtimes: io.containerd.runc.v2 nvidia runc\n Default Runtime: runc\n"
    error = 'Error response from daemon: could not select device driver "" with capabilities: [[gpu]].\n'
    found = [recognise(text) for text in (info, info + error)]
    assert [kind.name for kind in found if kind] == ["docker-info", "container-error"]


def test_there_is_a_text_for_every_format() -> None:
    assert set(TEXTS) == set(names())


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_a_text_is_recognised_by_its_own_signature(name: str) -> None:
    kind = recognise(TEXTS[name])
    assert kind is not None
    assert kind.name == name


@pytest.mark.parametrize(
    "text",
    ["", "\n\n", "hello world\n", "{}", "a, b, c\n1, 2, 3\n", "GPU prices rise again\n", 'NAME="Ubuntu"\nID=ubuntu\n'],
)
def test_any_other_text_is_not_recognised(text: str) -> None:
    assert recognise(text) is None


def test_a_peer_matrix_of_one_gpu_is_told_by_its_legend() -> None:
    kind = recognise("\tGPU0\n GPU0\tX\n\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n")
    assert kind is not None
    assert kind.name == "topo-p2p"


def test_kinds_of_one_name_have_one_parser_and_title() -> None:
    for name in names():
        kinds = by_name(name)
        assert len({(kind.parse, kind.title) for kind in kinds}) == 1
    assert by_name("nothing") == ()
    assert len(KINDS) >= len(names())
