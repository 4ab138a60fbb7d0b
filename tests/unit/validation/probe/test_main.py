"""The probe as a process of its own, on a host made of a directory of tools and a tree of files."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from validation.evidence import Bundle, Outcome
from validation.probe.collectors import collectors
from validation.probe.files import Root
from validation.transcript import Transcript


@pytest.fixture
def host(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    (tmp_path / "root").mkdir()
    return tmp_path


def tool(host: Path, name: str, script: str) -> None:
    path = host / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def probe(host: Path, *arguments: str) -> Bundle:
    environment = {"PATH": str(host / "bin"), "KILN_ROOT": str(host / "root"), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "validation.probe", "collect", "n0", *arguments]
    result = subprocess.run(command, env=environment, capture_output=True, timeout=30, check=False)
    transcript = Transcript("n0")
    transcript.feed(result.stdout)
    return transcript.bundle("node")


def test_an_empty_host_gives_every_item_and_each_says_not_found(host: Path) -> None:
    bundle = probe(host)
    assert bundle.complete
    assert set(bundle.items) == {entry.name for entry in collectors(Root("/"))}
    assert {item.outcome for item in bundle.items.values()} == {Outcome.NOT_FOUND}
    assert all(item.error for item in bundle.items.values())


def test_a_host_short_of_descriptors_costs_the_items_it_has_no_room_for(host: Path) -> None:
    tool(host, "uname", "echo Linux 6.8 x86_64")
    environment = {"PATH": str(host / "bin"), "KILN_ROOT": str(host / "root"), "PYTHONPATH": os.pathsep.join(sys.path)}
    script = 'ulimit -n 32; exec "$0" -m validation.probe collect n0'
    result = subprocess.run(
        ["/bin/sh", "-c", script, sys.executable], env=environment, capture_output=True, timeout=30, check=False
    )
    transcript = Transcript("n0")
    transcript.feed(result.stdout)
    bundle = transcript.bundle("node")
    assert bundle.complete
    assert set(bundle.items) == {entry.name for entry in collectors(Root("/"))}
    refused = {item.error for item in bundle.items.values() if item.outcome is Outcome.ERROR}
    assert refused == {"could not be started: Too many open files"}
    assert any(item.outcome is not Outcome.ERROR for item in bundle.items.values())


def test_the_root_in_effect_is_in_the_header(host: Path) -> None:
    assert probe(host).root == str(host / "root")


def test_tools_run_in_the_c_locale(host: Path) -> None:
    tool(host, "uname", 'echo "$LC_ALL $*"')
    assert probe(host).items["kernel"].stdout == "C -srm\n"


def test_a_tool_below_the_root_is_found_after_the_path(host: Path) -> None:
    folder = host / "root/usr/local/cuda/bin"
    folder.mkdir(parents=True)
    (folder / "nvcc").write_text("#!/bin/sh\necho below the root\n")
    (folder / "nvcc").chmod(0o755)
    assert probe(host).items["nvcc"].stdout == "below the root\n"
    tool(host, "nvcc", "echo on the path")
    assert probe(host).items["nvcc"].stdout == "on the path\n"


@pytest.mark.parametrize(
    "first", ["echo 'dmesg: read kernel buffer failed: Operation not permitted' >&2; exit 1", "exit 1", None]
)
def test_the_journal_is_read_where_dmesg_does_not_work(first: str | None, host: Path) -> None:
    if first:
        tool(host, "dmesg", first)
    tool(host, "journalctl", 'echo "kernel: line"')
    item = probe(host).items["kernel-log"]
    assert (item.outcome, item.source, item.stdout) == (Outcome.OK, "journalctl -k -b --no-pager", "kernel: line\n")


@pytest.mark.parametrize(
    ("dmesg", "journal", "source"),
    [
        ("[    0.000000] Linux version 6.8", "kernel: Linux version 6.8", "dmesg"),
        ("[  901.100000] audit: late", "kernel: Linux version 6.8", "journalctl -k -b --no-pager"),
        ("[  901.100000] audit: late", "-- No entries --", "dmesg"),
        ("[  901.100000] audit: late", "kernel: audit: somewhat earlier", "journalctl -k -b --no-pager"),
    ],
)
def test_the_journal_is_read_where_the_ring_buffer_has_lost_its_beginning(
    dmesg: str, journal: str, source: str, host: Path
) -> None:
    tool(host, "dmesg", f'echo "{dmesg}"')
    tool(host, "journalctl", f'echo "{journal}"')
    item = probe(host).items["kernel-log"]
    assert (item.outcome, item.source) == (Outcome.OK, source)


def test_a_log_nobody_may_read_is_denied_with_the_tools_words(host: Path) -> None:
    tool(host, "dmesg", "echo 'dmesg: read kernel buffer failed: Operation not permitted' >&2; exit 1")
    item = probe(host).items["kernel-log"]
    assert (item.outcome, item.source) == (Outcome.DENIED, "dmesg")
    assert item.error == "dmesg: read kernel buffer failed: Operation not permitted"


def test_a_tool_that_fails_keeps_its_output_and_exit_status(host: Path) -> None:
    tool(host, "nvidia-smi", "echo 'Unable to determine the device handle for GPU0: GPU is lost'; exit 15")
    item = probe(host).items["nvidia-smi-q-x"]
    assert (item.outcome, item.rc) == (Outcome.OK, 15)
    assert "GPU is lost" in item.stdout


def test_a_caller_that_ignores_the_end_of_children_hides_no_exit_status(host: Path) -> None:
    tool(host, "nvidia-smi", "echo half; exit 15")
    environment = {"PATH": str(host / "bin"), "PYTHONPATH": os.pathsep.join(sys.path)}
    ignoring = (
        "import signal, os, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = [sys.executable, "-c", ignoring, sys.executable, "-m", "validation.probe", "collect", "n0"]
    result = subprocess.run(command, env=environment, capture_output=True, timeout=30, check=False)
    transcript = Transcript("n0")
    transcript.feed(result.stdout)
    item = transcript.bundle("node").items["topo-m"]
    assert (item.outcome, item.rc) == (Outcome.OK, 15)


def test_a_tool_that_opens_the_gpus_has_time_for_a_cold_start() -> None:
    """fi_info too: libfabric opens CUDA, which initialises every GPU where persistence mode is off."""
    limits = {entry.name: entry.timeout_s for entry in collectors(Root("/"))}
    opening = ("nvml", "nvidia-smi-q-x", "topo-m", "topo-p2p-r", "nvlink-s", "fi-info")
    assert min(limits[name] for name in opening) >= 45.0


def test_a_tool_that_hangs_costs_its_limit_and_nothing_else(host: Path) -> None:
    tool(host, "nvidia-smi", "exec /bin/sleep 60")
    tool(host, "uname", "echo Linux 6.8 x86_64")
    begun = time.monotonic()
    bundle = probe(host, "0.5")
    assert bundle.complete
    assert bundle.items["topo-m"].outcome is Outcome.TIMEOUT
    assert bundle.items["kernel"].outcome is Outcome.OK
    assert time.monotonic() - begun < 5.0


def test_a_probe_whose_reader_is_gone_ends_and_leaves_no_tool_running(host: Path) -> None:
    tool(host, "uname", f"echo $$ > {host}/pid; exec /bin/sleep 60")
    tool(host, "lspci", "/bin/sleep 0.5; echo late")
    environment = {"PATH": str(host / "bin"), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "validation.probe", "collect", "n0", "20"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        end = time.monotonic() + 5.0
        while not (host / "pid").exists() or not (host / "pid").read_text():
            assert time.monotonic() < end
            time.sleep(0.01)
        process.stdout.close()
        assert process.wait(timeout=10) == 1
    pid = int((host / "pid").read_text())
    end = time.monotonic() + 5.0
    while runs(pid) and time.monotonic() < end:
        time.sleep(0.02)
    assert not runs(pid)


def runs(pid: int) -> bool:
    """Whether the process still runs; one that nobody has reaped yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
