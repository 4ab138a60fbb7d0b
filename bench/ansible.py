"""Ansible gathers the same facts from the same hosts: in one task a host, and in a task a tool as people write it.

Ansible's own settings where they help it: pipelining, persistent connections, as many forks as Kiln has logins.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench import openssh
from bench.clock import Taken, taken
from bench.fleet import Fleet
from profiles.errors import KilnError

LIMIT_S = 600.0
ABSENT = (
    "no ansible-playbook on PATH: python3 -m venv /tmp/ansible && /tmp/ansible/bin/pip install ansible-core, "
    "then --ansible /tmp/ansible/bin/ansible-playbook"
)


def find(given: Path | None) -> Path | None:
    """The ``ansible-playbook`` given, else the one on PATH; None where there is none."""
    found = shutil.which(given or "ansible-playbook")
    return Path(found) if found else None


def version(playbook: Path) -> str:
    """``ansible-playbook [core 2.19.14]``."""
    done = subprocess.run([playbook, "--version"], capture_output=True, text=True, check=False)
    return (done.stdout.splitlines() or ["an unknown version"])[0]


def one_task(fleet: Fleet) -> list[Sequence[str]]:
    """For each host its shell lines: one that does all."""
    return [(openssh.fact_commands(host),) for host in fleet.hosts]


def task_a_tool(fleet: Fleet) -> list[Sequence[str]]:
    """For each host its shell lines: one a tool, and one for the files."""
    return [(*openssh.tool_commands(), f"{openssh.file_command(host)}; true") for host in fleet.hosts]


def play(playbook: Path, fleet: Fleet, lines: list[Sequence[str]], folder: Path, concurrency: int) -> Taken:
    """Run each host's lines as tasks. Raises KilnError where a host failed."""
    folder.mkdir()
    hosts = {
        target.name: {
            "ansible_host": target.address,
            "ansible_python_interpreter": str(host.folder / "bin" / "python3"),
            "lines": own,
        }
        for target, host, own in zip(fleet.targets, fleet.hosts, lines, strict=True)
    }
    options = f"-F none -o IdentitiesOnly=yes -o UserKnownHostsFile={fleet.access.known_hosts}"
    shared = {
        "ansible_port": fleet.access.port,
        "ansible_user": fleet.targets[0].user,
        "ansible_ssh_private_key_file": str(fleet.access.key_file),
        "ansible_ssh_common_args": options,
    }
    tasks = [
        {"shell": f"{{{{ lines[{number}] }}}}", "register": f"said{number}", "changed_when": False}
        for number in range(len(lines[0]))
    ]
    (folder / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts, "vars": shared}}))
    (folder / "play.json").write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
    (folder / "ansible.cfg").write_text("")  # nobody's own settings
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(folder / "ansible.cfg"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_PIPELINING": "1",
        "ANSIBLE_FORKS": str(concurrency),
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(folder / "cp"),
        "ANSIBLE_NOCOLOR": "1",
    }
    with _hung_up(folder / "cp"), taken() as took:
        command = [str(playbook), "-i", str(folder / "hosts.json"), str(folder / "play.json")]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL
        )
    if done.returncode:
        raise KilnError(f"ansible-playbook ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return took


@contextlib.contextmanager
def _hung_up(sockets: Path) -> Iterator[None]:
    """Persistent connections end with the play, not a minute later."""
    try:
        yield
    finally:
        for socket in sockets.glob("*") if sockets.is_dir() else ():
            subprocess.run(["ssh", "-O", "exit", "-o", f"ControlPath={socket}", "x"], capture_output=True, check=False)
