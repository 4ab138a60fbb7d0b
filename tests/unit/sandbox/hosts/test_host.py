"""A simulated host as a directory: what is in it, and how faults, clearing and reboots change it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from profiles.errors import ConfigError
from sandbox.hosts.host import SimulatedHost

P5 = "p5.48xlarge"


def tree(host: SimulatedHost) -> dict[str, bytes]:
    return {
        str(path.relative_to(host.folder)): path.read_bytes()
        for path in sorted(host.folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def run(host: SimulatedHost, command: str, user: str = "ubuntu") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", command],
        env=host.environment(user),
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


def create(home: Path) -> SimulatedHost:
    return SimulatedHost.create(home, "h1", "gpu-a", P5, efa_count=32, instance_id="i-0123456789abcdef0")


@pytest.fixture
def p5(tmp_path: Path) -> SimulatedHost:
    return create(tmp_path)


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> SimulatedHost:
    """A host that no test changes."""
    return create(tmp_path_factory.mktemp("unchanged"))


def test_everything_is_readable_by_every_user(unchanged: SimulatedHost) -> None:
    for path in unchanged.folder.rglob("*"):
        if not path.is_symlink():
            wanted = 0o005 if path.is_dir() or path.parent.name == "bin" else 0o004
            assert path.stat().st_mode & wanted == wanted, path


def test_no_draft_is_left_behind(p5: SimulatedHost) -> None:
    p5.inject("nvlink-down")
    assert not list(p5.folder.rglob("*.draft"))


def test_python_on_its_path_sees_the_host_and_not_this_machine(unchanged: SimulatedHost) -> None:
    done = run(unchanged, 'python3 -I -S -c \'import os; print(os.environ["KILN_ROOT"], os.environ["PATH"])\'')
    assert done.stdout.split() == [str(unchanged.folder / "root"), str(unchanged.folder / "bin")]


def test_sudo_gives_root_a_fresh_environment(unchanged: SimulatedHost) -> None:
    done = run(unchanged, "SECRET=1 sudo -n sh -c 'id -u; echo \"[$SECRET]\"; command -v nvidia-smi'")
    assert done.stdout.splitlines() == ["0", "[]", str(unchanged.folder / "bin" / "nvidia-smi")]


def test_the_kernel_log_is_for_root(unchanged: SimulatedHost) -> None:
    assert run(unchanged, "dmesg").returncode == 1
    assert "NVRM" in run(unchanged, "sudo -n dmesg").stdout
    assert "NVRM" in run(unchanged, "journalctl -k -b --no-pager", user="root").stdout


def test_the_query_as_csv_has_header_and_units_as_asked(unchanged: SimulatedHost) -> None:
    done = run(unchanged, "nvidia-smi --query-gpu=index,name,memory.total --format=csv | head -2")
    assert done.stdout == "index, name, memory.total [MiB]\n0, NVIDIA H100 80GB HBM3, 81559 MiB\n"
    done = run(unchanged, "nvidia-smi --query-gpu=power.draw,memory.total --format=csv,noheader,nounits | head -1")
    assert done.stdout == "68.92, 81559\n"
    done = run(unchanged, "nvidia-smi --query-gpu=bogus --format=csv")
    assert (done.returncode, done.stdout) == (2, 'Field "bogus" is not a valid field to query.\n')


def test_the_query_as_csv_ends_where_a_gpu_is_lost(p5: SimulatedHost) -> None:
    p5.inject("gpu-lost")
    done = run(p5, "nvidia-smi --query-gpu=index,name --format=csv,noheader")
    assert done.returncode == 15
    assert done.stdout.strip().startswith("Unable to determine the device handle for GPU0000:86:00.0: GPU is lost.")


def test_a_call_without_a_prepared_answer_is_refused(unchanged: SimulatedHost) -> None:
    for command in ("nvidia-smi --frobnicate", "lspci -x", "lsblk", "cloud-init clean", "systemctl stop ssh"):
        done = run(unchanged, command)
        assert done.returncode == 64, command
        assert "no answer prepared" in done.stderr


def test_a_unit_that_is_not_there_is_shown_as_such(unchanged: SimulatedHost) -> None:
    assert (
        run(unchanged, "systemctl show nothing -p Id,LoadState").stdout == "Id=nothing.service\nLoadState=not-found\n"
    )
    assert run(unchanged, "systemctl is-active nvidia-fabricmanager").stdout == "active\n"


def test_cloud_init_says_how_far_it_is(p5: SimulatedHost) -> None:
    assert run(p5, "cloud-init status --wait").stdout == "status: done\n"
    p5.inject("cloud-init-running")
    assert '"status": "running"' in run(p5, "cloud-init status --format json").stdout
    assert not (p5.folder / "root/run/cloud-init/result.json").exists()


def test_clearing_leaves_no_trace_of_a_fault(p5: SimulatedHost) -> None:
    before = tree(p5)
    for name in ("gpu-lost", "efa-missing", "no-sudo", "nvidia-smi-hangs", "cloud-init-running", "no-python"):
        p5.inject(name)
    assert tree(p5) != before
    p5.clear()
    assert tree(p5) == before


def test_injecting_twice_is_injecting_once(p5: SimulatedHost) -> None:
    p5.inject("gpu-missing")
    p5.inject("gpu-missing")
    assert p5.faults == ("gpu-missing",)
    assert len(p5.state.gpus) == 7


def test_a_fault_that_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    host = SimulatedHost.create(tmp_path, "h1", "gpu-a", "g5.xlarge")
    before = tree(host)
    with pytest.raises(ConfigError, match="no NVLink"):
        host.inject("nvlink-down")
    assert host.faults == ()
    assert tree(host) == before


def test_a_reboot_changes_the_boot_id_and_cures_what_a_reboot_cures(p5: SimulatedHost) -> None:
    boot_file = p5.folder / "root/proc/sys/kernel/random/boot_id"
    before = boot_file.read_text()
    for name in ("nvlink-down", "xid-79", "gpu-missing"):
        p5.inject(name)
    p5.reboot()
    assert boot_file.read_text() != before
    assert p5.faults == ("gpu-missing",)
    assert "Xid" not in (p5.folder / "answers/dmesg").read_text()


def test_a_reboot_leaves_what_a_board_remembers(p5: SimulatedHost) -> None:
    p5.inject("ecc-uncorrectable")
    p5.inject("remap-pending")
    p5.reboot()
    gpu = p5.state.gpus[3]
    assert p5.faults == ()
    assert (gpu.errors.volatile_uncorrected, gpu.errors.aggregate_uncorrected) == (0, 2)
    assert (gpu.repairs.uncorrected, gpu.repairs.pending) == (1, False)
    p5.clear()
    assert p5.state.gpus[3].errors.aggregate_uncorrected == 0


def test_another_process_opens_the_host_as_it_is(p5: SimulatedHost, tmp_path: Path) -> None:
    p5.inject("no-python")
    again = SimulatedHost.open(tmp_path, "h1")
    assert (again.identity, again.faults) == (p5.identity, ("no-python",))
    again.clear()
    assert os.access(p5.folder / "bin" / "python3", os.X_OK)


def test_a_host_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no simulated host 'h9'"):
        SimulatedHost.open(tmp_path, "h9")


def test_listeners_hear_every_change_until_they_leave(p5: SimulatedHost) -> None:
    heard: list[tuple[str, ...]] = []
    leave = p5.subscribe(lambda: heard.append(p5.faults))
    p5.inject("xid-13")
    p5.clear()
    leave()
    p5.inject("xid-79")
    assert heard == [("xid-13",), ()]


def test_removing_takes_the_directory_away(p5: SimulatedHost) -> None:
    p5.remove()
    assert not p5.folder.exists()
