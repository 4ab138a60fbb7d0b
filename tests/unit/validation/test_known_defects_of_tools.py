"""Defects of tools and of those who read them, by name: ``kiln explain`` does not have them.

Sources: the systems and the issues that were read for the project, 2026. Short texts of our own.
"""

from __future__ import annotations

import json

import pytest

from profiles.models import Expectation
from validation.checks.tool_results import OciHealthResult
from validation.explain import explain
from validation.facts.oci import Measurement, OciResult
from validation.facts.store import Facts
from validation.verdict import Verdict

RULE = "+---------------------------+------------------------------------------------+\n"
UUID = "GPU-b8d61a3c-8f0b-2f52-8a15-5a53b3d9b6d1"


def diag(*rows: tuple[str, str]) -> str:
    cells = "".join(f"| {name:<26}| {value:<47}|\n" for name, value in rows)
    return f"Successfully ran diagnostic for group.\n{RULE}| Diagnostic                | Result |\n{cells}{RULE}"


def diag_json(title: str, test: dict[str, object]) -> str:
    return json.dumps({title: {"test_categories": [{"category": "Hardware", "tests": [test]}]}})


# --- DCGM


def test_a_diagnostic_that_skipped_every_hardware_test_does_not_pass() -> None:
    """DCGM 55, 139; cluster-health-scanner looks for "fail" alone, so that Skip passes."""
    text = diag(("software", "Pass"), ("Memory", "Skip - All"), ("PCIe", "Skip - All"))
    assert explain(text).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(("word", "verdict"), [("Pass - All", Verdict.PASS), ("Fail - All", Verdict.FAIL)])
def test_a_diagnostic_means_what_it_says(word: str, verdict: Verdict) -> None:
    """slurm-gcp PR 223: the result was read the wrong way round."""
    assert explain(diag(("software", "Pass"), ("PCIe", word))).verdict is verdict


def test_a_status_of_dcgm_that_nobody_knows_does_not_pass() -> None:
    """awsome-distributed-training returns 0 for it."""
    assert explain(diag(("software", "Pass"), ("PCIe", "Inconclusive"))).verdict is Verdict.UNKNOWN


def test_both_generations_of_dcgms_json_are_read() -> None:
    """DCGM 296: "DCGM GPU Diagnostic" became "DCGM Diagnostic" with other fields, and readers found nothing to fail."""
    old = diag_json("DCGM GPU Diagnostic", {"name": "PCIe", "results": [{"gpu_id": "2", "status": "Fail"}]})
    new: dict[str, object] = {"name": "pcie", "results": [{"entity_group": "GPU", "entity_id": 2, "status": "Fail"}]}
    assert explain(old).verdict is Verdict.FAIL
    assert explain(diag_json("DCGM Diagnostic", new)).verdict is Verdict.FAIL


def test_a_diagnostic_that_never_ran_does_not_pass() -> None:
    """superbenchmark 411 and deepops' gpu_diag.sh end with 0 where the thing they run does not."""
    assert explain("Error: Unable to complete diagnostic for group 7.\n").verdict is not Verdict.PASS


# --- load generators


def burn(*gpus: tuple[int, int, int, str]) -> str:
    work = " - ".join(f"{done} ({rate} Gflop/s)" for done, rate, _, _ in gpus)
    errors = " - ".join(str(count) for _, _, count, _ in gpus)
    heat = " - ".join("60 C" for _ in gpus)
    words = "".join(f"\tGPU {at}: {word}\n" for at, (_, _, _, word) in enumerate(gpus))
    return f"100.0%  proc'd: {work}   errors: {errors}   temps: {heat} \n\nTested {len(gpus)} GPUs:\n{words}"


def test_a_faulty_burn_that_ended_with_0_does_not_pass() -> None:
    """gpu-burn 12: main returns 0 whatever its verdict."""
    assert explain(burn((40, 900, 0, "OK"), (40, 900, 3, "FAULTY"))).verdict is Verdict.FAIL


def test_a_burn_that_did_no_work_does_not_pass() -> None:
    """gpu-burn 14, 123, 124: OK after zero products."""
    assert explain(burn((0, 0, 0, "OK"), (40, 900, 0, "OK"))).verdict is Verdict.FAIL


def test_a_burn_with_errors_is_faulty_whatever_its_closing_word() -> None:
    """gpu-burn prints negative counts where its counter overflows, and OK below them."""
    assert explain(burn((40, 900, -7, "OK"), (40, 900, 0, "OK"))).verdict is Verdict.FAIL


def test_zero_flops_are_not_healthy() -> None:
    """gpu-fryer 10: "0 Gflops/s ... All GPUs seem healthy"."""
    text = "".join(
        f"  GPU #{index}:  0 Gflops/s (min: 0.00, max: 0.00, dev: 0.00%)\n          Temperature: 30.00\n"
        "          Throttling HW: false, Thermal SW: false, Thermal HW: false\n"
        for index in range(2)
    )
    assert explain(f"{text}All GPUs seem healthy\n").verdict is Verdict.FAIL


# --- bandwidth

NCCL = (
    "# nThread 1 nGpus 8 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1\n"
    "#  Rank  0 Group  0 Pid 100 on host1 device  0 [0000:53:00] NVIDIA A100-SXM4-40GB\n"
    "#   size   count   type   redop   root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
    "      8       2     float     sum      -1    10.0    0.00    0.10      0    10.0    0.00    0.10      0\n"
    "     16       4     float     sum      -1    10.0    0.00  235.30      0    10.0    0.00  234.10      0\n"
    "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 68.40\n#\n"
)


def test_an_average_over_all_sizes_is_not_held_against_a_good_node() -> None:
    """nccl-tests 149, 293: "Avg bus bandwidth" is 68 on a node whose peak is 235."""
    explanation = explain(NCCL)
    assert explanation.verdict not in (Verdict.FAIL, Verdict.WARN)
    assert any("235.3" in finding.message for finding in explanation.findings)


def test_wrong_results_of_a_collective_fail_it_whatever_its_bandwidth() -> None:
    """Crusoe's sample runs nccl-tests with "|| true"; DCGM's plug-in looks for one word."""
    text = NCCL.replace("234.10      0", "234.10     12").replace("values : 0 OK", "values : 12 FAILED")
    assert explain(text).verdict is Verdict.FAIL


def test_a_collective_of_one_gpu_measured_nothing() -> None:
    """nccl-tests 249: its average is 0, which is neither good nor bad."""
    text = NCCL.replace("235.30", "  0.00").replace("234.10", "  0.00").replace("0.10 ", "0.00 ").replace("68.40", "0")
    assert explain(text).verdict not in (Verdict.PASS, Verdict.WARN)


def test_a_waived_test_is_neither_a_pass_nor_a_failure() -> None:
    """nvbandwidth waives what a machine does not have; DCGM's plug-in fails on the word ERROR alone."""
    assert explain("nvbandwidth Version: v0.8\n\nWaived:\n\nWaived:\n").verdict is Verdict.UNKNOWN


def test_more_than_the_memory_can_do_is_no_good_result() -> None:
    """OCI's sample calls 4276 GB/s on an H100 IDEAL: there was no ceiling."""
    result = OciResult("NVIDIA H100 80GB HBM3", "bf16", "pass", (Measurement("memory", UUID, 4276.0, "GB/s", "IDEAL"),))
    (finding,) = OciHealthResult().evaluate(Facts({OciResult: result}), Expectation(instance_type=""))
    assert finding.verdict is Verdict.UNKNOWN


# --- links and topology


@pytest.mark.parametrize("word", ["inActive", "inactive", "InActive"])
def test_all_links_inactive_is_read_in_any_case(word: str) -> None:
    """azurehpc-health-checks PR 132 and gpud 1085: drivers write "inActive", and a scan for "<inactive>" finds none."""
    text = f"GPU 0: NVIDIA H100 80GB HBM3 (UUID: {UUID})\nGPU 1: NVIDIA H100 80GB HBM3 (UUID: {UUID[:-1]}2)\n"
    text = text.replace("\n", f"\nNVML: Unable to retrieve NVLink information as all links are {word}\n")
    assert explain(text).verdict is Verdict.FAIL


def test_a_broken_nvidia_smi_is_not_taken_for_links_without_trouble() -> None:
    """imbue-ai/cluster-health: grep for "<inactive>" finds nothing in an error either, and calls that healthy."""
    for text in (
        "Failed to initialize NVML: Driver/library version mismatch\n",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that it runs.\n",
    ):
        assert explain(text).verdict is Verdict.FAIL


MATRIX = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV12\t0-23\t0\nGPU1\tNV12\t X \t0-23\t0\n"


def test_a_column_that_a_newer_driver_adds_changes_no_topology() -> None:
    """aws-k8s-tester compares with plain diff: driver 535 added "GPU NUMA ID", and every node failed."""
    newer = MATRIX.replace("NUMA Affinity\n", "NUMA Affinity\tGPU NUMA ID\n").replace("\t0\n", "\t0\t\tN/A\n")
    old, new = (explain(text).to_dict()["facts"]["Topology"] for text in (MATRIX, newer))
    assert old["links"] == new["links"] == {"0-1": "NV12", "1-0": "NV12"}


def test_a_topology_of_one_gpu_is_read() -> None:
    """NVSentinel refuses it."""
    explanation = explain("\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-15\t0\t\tN/A\n")
    assert explanation.kind == "topo-m"
    assert explanation.verdict is not Verdict.UNKNOWN


def test_the_legend_of_a_peer_matrix_is_not_counted() -> None:
    """awsome-distributed-training counts "not supported" in "topo -p2p", and so the legend of good machines."""
    text = (
        " \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tOK\tX\n\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n"
        "  CNS  = Chipset not supported\n  GNS  = GPU not supported\n  TNS  = Topology not supported\n"
        "  NS   = Not supported\n  U    = Unknown\n"
    )
    assert explain(text).verdict is Verdict.PASS
    assert explain(text.replace("GPU0\tX\tOK", "GPU0\tX\tTNS")).verdict is not Verdict.PASS


# --- network


def fi_info(domains: int, records: int) -> str:
    return "".join(
        f"provider: efa\n    fabric: {'efa-direct' if record else 'efa'}\n    domain: rdmap{domain}s0-rdm\n"
        "    version: 201.0\n    type: FI_EP_RDM\n    protocol: FI_PROTO_EFA\n"
        for domain in range(domains)
        for record in range(records)
    )


def test_two_records_of_a_nic_are_one_nic() -> None:
    """libfabric 2.1 prints "efa" and "efa-direct" for each NIC: half of the NICs would be as many lines as all."""
    facts = explain(fi_info(16, 2)).to_dict()["facts"]["EfaNics"]
    assert len(facts["nics"]) == 16


def test_no_efa_is_a_failure_and_not_an_empty_list() -> None:
    assert explain("fi_getinfo: -61 (No data available)\n").verdict is Verdict.FAIL


def test_zero_guids_of_an_efa_are_no_fault() -> None:
    """Rules for InfiniBand call them one."""
    text = (
        "hca_id:\trdmap79s0\n\ttransport:\t\t\tunspecified (4)\n\tfw_ver:\t\t\t\t0.0.0.0\n"
        "\tnode_guid:\t\t\t0000:0000:0000:0000\n\tsys_image_guid:\t\t\t0000:0000:0000:0000\n\tvendor_id:\t\t\t0x1d0f\n"
        "\tvendor_part_id:\t\t\t61344\n\thw_ver:\t\t\t\t0xEFA0\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n"
        "\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t4096 (5)\n"
        "\t\t\tsm_lid:\t\t\t0\n\t\t\tport_lid:\t\t0\n\t\t\tport_lmc:\t\t0x01\n\t\t\tlink_layer:\t\tUnspecified\n"
    )
    assert explain(text).verdict is Verdict.PASS


# --- nvidia-smi


@pytest.mark.parametrize("words", [("DRIVER version", "CUDA Version"), ("KMD version", "CUDA UMD version")])
def test_the_versions_are_read_in_both_wordings(words: tuple[str, str]) -> None:
    """Driver 610 renamed "Driver" to "KMD" and "CUDA" to "CUDA UMD"; who looked for the old words found no driver."""
    driver, cuda = words
    text = f"NVIDIA-SMI version : 610.43\nNVML version       : 610.43\n{driver} : 610.43.02\n{cuda} : 13.3\n"
    assert explain(text).verdict is Verdict.PASS
    assert explain(text.replace("610.43.02", "580.105.08")).verdict is Verdict.FAIL


def test_the_cuda_version_of_the_banner_is_no_installed_toolkit() -> None:
    """It is the newest CUDA that the driver can run; nvcc tells what is installed."""
    text = (
        "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 12.6, V12.6.85\nBuild cuda_12.6.r12.6\n"
    )
    assert "12.6.85" in str(explain(text).to_dict()["facts"])
