"""Results of burn-in and bandwidth tools, and DCGM in its three generations."""

from __future__ import annotations

import json

import pytest

from profiles.errors import ParseError
from validation.facts import (
    container_gpus,
    dcgm,
    dcgm_nvlink,
    fio,
    gpu_burn,
    gpu_fryer,
    nccl_tests,
    nvbandwidth,
    nvlink_errors,
    oci,
    stress_ng,
)
from validation.facts.missing import Missing, Reason

FIRST = "10.0%  proc'd: 0 (0 Gflop/s) - 0 (0 Gflop/s)   errors: 0 - 0   temps: 30 C - 31 C \r"
LAST = "100.0%  proc'd: 40 (900 Gflop/s) - 41 (905 Gflop/s)   errors: 0 - -7  (WARNING!)  temps: 60 C - 61 C \n"
TESTED = "Killing processes.. done\n\nTested 2 GPUs:\n\tGPU 0: OK\n\tGPU 1: FAULTY\n"


def test_the_last_progress_counts_and_a_carriage_return_ends_one() -> None:
    burn = gpu_burn.parse(FIRST + LAST + TESTED)
    assert [(gpu.iterations, gpu.errors, gpu.verdict) for gpu in burn.gpus] == [(40, 0, "OK"), (41, -7, "FAULTY")]
    assert (burn.finished, burn.aborted, burn.percent) == (True, False, 100.0)


def test_a_progress_line_that_was_cut_does_not_hide_a_gpu() -> None:
    cut = "100.0%  proc'd: 50 (900 Gflop/s)   errors: 0   temps: 60 C\n"
    assert len(gpu_burn.parse(LAST + cut).gpus) == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello\n",
        LAST + "Tested 3 GPUs:\n\tGPU 0: OK\n",
        LAST.replace("0 - -7  (WARNING!)", "0") + TESTED,
        LAST + TESTED.replace("GPU 1:", "GPU 7:"),
    ],
)
def test_a_burn_in_that_does_not_add_up_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        gpu_burn.parse(text)


NCCL = (
    "# nThread 1 nGpus 2 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1\n"
    "#  Rank  0 Group  0 Pid 100 on host1 device  0 [0000:53:00] NVIDIA H100 80GB HBM3\n"
    "#   size   count   type   redop   root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
    "      8       2     float     sum      -1    10.0    0.00    0.10      0    10.0    0.00    0.10      0\n"
    "host1:1:1 [0] NCCL INFO comm ready\n"
    "     16       4     float     sum      -1    10.0    0.00  400.50      0    10.0    0.00  390.10      0\n"
    "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 197.70\n#\n"
)


def test_the_new_form_of_nccl_tests_is_read() -> None:
    result = nccl_tests.parse(NCCL)
    assert (result.peak_gbps, result.average_gbps, result.checked) == (400.5, 197.7, True)
    assert result.ranks == (("host1", "NVIDIA H100 80GB HBM3"),)


def test_results_that_were_not_checked_are_said_to_be() -> None:
    assert not nccl_tests.parse(NCCL.replace("validation: 1", "validation: 0")).checked
    assert not nccl_tests.parse(NCCL.replace("390.10      0", "390.10    N/A")).checked


def test_wrong_results_are_counted() -> None:
    wrong = nccl_tests.parse(
        NCCL.replace("390.10      0", "390.10      3").replace("values : 0 OK", "values : 3 FAILED")
    )
    assert (wrong.failed, wrong.out_of_bounds, wrong.sizes[1].wrong) == (True, 3, 3)


@pytest.mark.parametrize(
    "text",
    [
        "",
        NCCL[: NCCL.index("# Out of")],
        NCCL.replace("-1    10.0    0.00  400.50", "10.0    0.00  400.50"),
        NCCL.replace("400.50", "fast"),
        NCCL[: NCCL.index("      8       2")] + NCCL[NCCL.index("# Out of") :],
        NCCL.replace("busbw #wrong     time", "busbw #wrong     clock"),
    ],
)
def test_a_collective_that_did_not_end_or_has_other_columns_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        nccl_tests.parse(text)


BANDWIDTH = (
    "nvbandwidth Version: v0.8\nDevice 0: NVIDIA H100 80GB HBM3 (00000000:53:00)\nDevice 1: NVIDIA H100 80GB HBM3\n\n"
    "Running device_to_device_memcpy_read_ce.\nmemcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n"
    "           0         1\n"
    " 0       N/A    395.60\n 1    395.10       N/A\n\nSUM device_to_device_memcpy_read_ce 790.70\n\nWaived:\n"
)


def test_a_matrix_is_read_and_waived_tests_are_counted() -> None:
    run = nvbandwidth.parse(BANDWIDTH)
    assert run.tests[0].values == ((0, 1, 395.6), (1, 0, 395.1))
    assert (run.version, len(run.devices), run.waived) == ("v0.8", 2, 1)


@pytest.mark.parametrize("text", ["", BANDWIDTH[: BANDWIDTH.index("SUM")], BANDWIDTH.replace("    395.60\n", "\n")])
def test_a_bandwidth_test_cut_short_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        nvbandwidth.parse(text)


FRYER = (
    "  GPU #0:  56263 Gflops/s (min: 56214.09, max: 56372.36, dev: 0.06%)\n          Temperature: 47.38\n"
    "          Throttling HW: false, Thermal SW: true, Thermal HW: false\nAll GPUs seem healthy\n"
)


def test_the_fryers_summary_and_closing_word_are_read() -> None:
    fryer = gpu_fryer.parse(FRYER)
    assert (fryer.gpus[0].gflops, fryer.gpus[0].throttled, fryer.said_healthy) == (56263, True, True)
    assert not gpu_fryer.parse(FRYER.replace("All GPUs seem healthy", "Some GPUs are not healthy")).said_healthy
    for bad in ("", FRYER.replace("All GPUs seem healthy\n", "")):
        with pytest.raises(ParseError):
            gpu_fryer.parse(bad)


def oci_document(**changes: object) -> str:
    tests = {"memory_bandwidth": {"GPU-1": {"bandwidth_gbps": 3000.5, "status": "IDEAL"}}, "gpu_topology": {"raw": "x"}}
    return json.dumps([{"tests": tests, "final_result": "pass", "gpu_info": {"gpu_name": "NVIDIA H200"}, **changes}])


def test_measurements_per_gpu_are_read_with_the_tools_own_word() -> None:
    result = oci.parse(oci_document())
    assert [(item.test, item.value, item.unit, item.word) for item in result.measurements] == [
        ("memory_bandwidth", 3000.5, "GB/s", "IDEAL")
    ]
    text = {"memory_bandwidth": {"GPU-1": {"bandwidth_gbps": "fast"}}}
    for bad in ("", "[]", oci_document(tests={}), oci_document(tests=text)):
        with pytest.raises(ParseError):
            oci.parse(bad)


TABLE = (
    "Successfully ran diagnostic for group.\n"
    "+---------------------------+------------------------------------------------+\n"
    "| Diagnostic                | Result                                         |\n"
    "+===========================+================================================+\n"
    "|-----  Deployment  --------+------------------------------------------------|\n"
    "| software                  | Pass                                           |\n"
    "|                           | GPU0: Pass                                     |\n"
    "|                           | GPU1: Fail                                     |\n"
    "| Warning: GPU1             | GPU 1 Persistence mode is off on this machine  |\n"
    "|                           | , enable it                                    |\n"
    "| PCIe                      | Skip - All                                     |\n"
    "+---------------------------+------------------------------------------------+\n"
)


def test_the_table_of_dcgm_4_is_read_gpu_by_gpu() -> None:
    software, pcie = dcgm.parse_diag(TABLE).tests
    assert software.results == ((-1, "pass"), (0, "pass"), (1, "fail"))
    assert software.notes == ("GPU 1 Persistence mode is off on this machine, enable it",)
    assert pcie.results == ((-1, "skip"),)


def test_dcgm_json_of_both_generations_is_read() -> None:
    old = {"DCGM GPU Diagnostic": {"test_categories": [{"tests": [
        {"name": "PCIe", "results": [{"gpu_ids": "0,1", "status": "Pass"}, {"gpu_id": "2", "status": "Fail",
         "warnings": "link"}]}]}]}}  # fmt: skip
    new = {"DCGM Diagnostic": {"test_categories": [{"tests": [
        {"name": "pcie", "results": [{"entity_group": "GPU", "entity_id": 3, "status": "Warn",
         "warnings": [{"warning": "slow"}]}]}]}]}}  # fmt: skip
    assert dcgm.parse_diag(json.dumps(old)).tests[0].results == ((0, "pass"), (1, "pass"), (2, "fail"))
    assert dcgm.parse_diag(json.dumps(new)).tests[0].results == ((3, "warn"),)
    assert dcgm.parse_diag(json.dumps(new)).tests[0].notes == ("slow",)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "{}",
        '{"DCGM Diagnostic": {"test_categories": []}}',
        '{"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": "a", "results": []}]}]}}',
        TABLE[: TABLE.rindex("\n+")],
        TABLE.replace("| PCIe                      |", "| PCIe "),
    ],
)
def test_a_diagnostic_of_another_shape_or_cut_short_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        dcgm.parse_diag(text)


def test_health_that_is_bad_must_say_why() -> None:
    bad = "| Overall Health            | Failure   |\n"
    why = f"{bad}| -> GPU 3          | Failure   |\n|    -> Memory system       | Failure   |\n|     | too many |\n"
    assert dcgm.parse_health(why).incidents == ((3, "Memory system", "Failure", ("too many",)),)
    assert dcgm.parse_health(bad.replace("Failure", "Healthy")).incidents == ()
    for text in ("", bad):
        with pytest.raises(ParseError):
            dcgm.parse_health(text)


COUNTERS = "".join(
    f"GPU {gpu}: NVIDIA H100 80GB HBM3 (UUID: GPU-{gpu})\n"
    + "".join(f"\t Link {link}: {name}: {link}\n" for link in range(2) for name in ("Replay Errors", "CRC Errors"))
    for gpu in range(2)
)


def test_nvlink_counters_are_read_per_link() -> None:
    errors = nvlink_errors.parse(COUNTERS)
    assert len(errors.counters) == 8
    assert (errors.counters[-1].gpu, errors.counters[-1].link, errors.counters[-1].count) == (1, 1, 1)
    without = nvlink_errors.parse("GPU 0: NVIDIA L4 (UUID: GPU-0)\nDevice does not have or support Nvlink\n")
    assert without.without == ((0, Missing(Reason.NOT_APPLICABLE, "Device does not have or support Nvlink")),)


def test_nvlink_counters_of_blackwell_are_read_and_its_error_rates_are_no_counts() -> None:
    names = ("Malformed packet Errors: 0", "Effective BER: 15e-255", "FEC Errors - 0: 36140749276", "Symbol Errors: 2")
    text = "GPU 0: NVIDIA B200 (UUID: GPU-0)\n" + "".join(f"\t Link 4: {name}\n" for name in names)
    counts = {item.name: item.count for item in nvlink_errors.parse(text).counters}
    assert counts == {"Malformed packet Errors": 0, "FEC Errors - 0": 36140749276, "Symbol Errors": 2}


def test_nvlink_counters_that_the_driver_does_not_have_are_not_zero() -> None:
    text = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)\n\t Link 0: Replay Errors: N/A\n\t Link 0: CRC Errors: N/A\n"
    errors = nvlink_errors.parse(text)
    assert errors.counters == ()
    assert errors.without == ((0, Missing(Reason.NOT_APPLICABLE, "N/A")),)


@pytest.mark.parametrize(
    "text", ["", COUNTERS.rstrip("\n").rpartition("\n")[0], "GPU 0: NVIDIA L4 (UUID: GPU-0)\n", COUNTERS + "hello\n"]
)
def test_nvlink_counters_cut_short_are_refused(text: str) -> None:
    with pytest.raises(ParseError):
        nvlink_errors.parse(text)


DCGM_LINKS = (
    "+----------------------+\n|  NvLink Link Status  |\n+----------------------+\nGPUs:\n"
    "    gpuId 0:\n        U U D X _\n    gpuId 1:\n        _ _ _ _ _\n"
    "NvSwitches:\n    No NvSwitches found.\n\nKey: Up=U, Down=D, Disabled=X, Not Supported=_\n"
)


def test_the_letters_of_dcgm_are_links() -> None:
    one, two = dcgm_nvlink.parse(DCGM_LINKS).gpus
    assert not isinstance(one.nvlinks, Missing)
    assert [(link.index, link.active) for link in one.nvlinks] == [(0, True), (1, True), (2, False), (3, False)]
    assert two.nvlinks == Missing(Reason.NOT_APPLICABLE, "Not Supported")


@pytest.mark.parametrize(
    "text",
    [
        "",
        DCGM_LINKS[: DCGM_LINKS.index("NvSwitches")],
        DCGM_LINKS.replace("        _ _ _ _ _\n", ""),
        DCGM_LINKS.replace("    gpuId 1:", "    gpuId 0:"),
    ],
)
def test_letters_cut_short_are_refused(text: str) -> None:
    with pytest.raises(ParseError):
        dcgm_nvlink.parse(text)


def job(**changes: object) -> dict[str, object]:
    direction = {"bw_bytes": 2_000_000, "bw": 1953, "iops": 500.0}
    return {"jobname": "seq", "error": 0, "read": direction, "write": {"bw": 0, "iops": 0}, **changes}


def test_jobs_of_fio_are_read_after_its_warnings() -> None:
    result = fio.parse("fio: warning, a note\n" + json.dumps({"fio version": "fio-3.28", "jobs": [job()]}))
    one = result.jobs[0]
    assert (one.name, one.read_bytes_s, one.write_bytes_s, one.read_iops) == ("seq", 2_000_000, 0, 500)
    for bad in ("", "{}", '{"fio version": "3", "jobs": []}', '{"fio version": "3", "jobs": [{}]}', '{"fio version"'):
        with pytest.raises(ParseError):
            fio.parse(bad)


STRESS = (
    "stress-ng: info:  [12] dispatching hogs: 8 cpu\nstress-ng: fail:  [13] cpu: wrong result\n"
    "stress-ng: info:  [12] skipped: 0\nstress-ng: info:  [12] passed: 7: cpu (7)\n"
    "stress-ng: info:  [12] failed: 1: cpu (1)\n"
    "stress-ng: info:  [12] unsuccessful run completed in 60.01s\n"
)


def test_a_stress_run_says_what_failed() -> None:
    run = stress_ng.parse(STRESS)
    assert (run.succeeded, run.passed, run.failed, run.failures) == (False, 7, 1, ("cpu: wrong result",))
    for bad in ("", "hello\n", STRESS[: STRESS.index("stress-ng: info:  [12] unsuccessful")]):
        with pytest.raises(ParseError):
            stress_ng.parse(bad)


def test_devices_for_containers_are_counted_by_index() -> None:
    text = 'time="x" level=info msg="Found 4 CDI devices"\nnvidia.com/gpu=0\nnvidia.com/gpu=1\nnvidia.com/gpu=GPU-1\n'
    assert container_gpus.parse(text + "nvidia.com/gpu=all\n").indices == (0, 1)
    for bad in ("", text):
        with pytest.raises(ParseError):
            container_gpus.parse(bad)
