"""Hosts that replay the evidence of one simulated host: they cost this machine little more than their sshd.

The login, the channel, the bytes and all that Kiln does with them are real; the probe is not run. The daemon runs a
shell script for every command: it takes the archive, and prints the recorded lines with this run's nonce, GPU UUIDs
of the session's own (two hosts with the same GPUs would be one machine under two names), and a digest that is right.
"""

from __future__ import annotations

import contextlib
import secrets
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from bench import sshd
from bench.fleet import Fleet, target
from profiles.errors import KilnError
from validation import bootstrap
from validation.remote import FabricRemote
from validation.target import Target
from validation.waiting import READY_COMMAND

LIMIT_S = 30.0
ADDRESSES = 64
NONCE = "@nonce@"
SCRIPT = """\
#!/bin/sh
PATH=/usr/bin:/bin
case $SSH_ORIGINAL_COMMAND in
*"KILN cloud-init"*) exec cat {folder}/ready ;;
*" collect "*) ;;
*) exec /bin/sh -c "$SSH_ORIGINAL_COMMAND" ;;
esac
nonce=${{SSH_ORIGINAL_COMMAND##* }}
cat >/dev/null
own=$(echo "$nonce" | cut -c 1-4)-$(echo "$nonce" | cut -c 5-8)
body={folder}/body.$$
sed -e "s/{nonce}/$nonce/" -e "s/GPU-\\([0-9a-f]\\{{8\\}}\\)-[0-9a-f]\\{{4\\}}-[0-9a-f]\\{{4\\}}-/GPU-\\1-$own-/g" \\
    {folder}/evidence >"$body"
sed "s/{nonce}/$nonce/" {folder}/start
cat "$body"
digest=$(sha256sum <"$body")
rm "$body"
printf '{{"digest":"%s","event":"end","items":{items},"kiln":"%s"}}\\n' "${{digest%% *}}" "$nonce"
"""


@dataclass(frozen=True)
class Recording:
    """What a host said: to the readiness check, and in the lines of the probe, with :data:`NONCE` for the run's own."""

    ready: str
    start: str
    evidence: str
    target: Target

    @property
    def items(self) -> int:
        return self.evidence.count("\n")


def record(host: Target) -> Recording:
    """Ask a host as Kiln does. Raises KilnError where it does not answer."""
    remote, nonce = FabricRemote(), secrets.token_hex(8)
    connection = remote.login(host.endpoint, remote.knock(host.endpoint, LIMIT_S), LIMIT_S)
    said = bytearray()

    def keep(data: bytes) -> bool:
        said.extend(data)
        return False

    with contextlib.closing(connection):
        ready = connection.execute(READY_COMMAND, timeout_s=LIMIT_S)
        command = bootstrap.command(host.user, ["collect", nonce])
        connection.execute(command, stdin=bootstrap.archive(), timeout_s=LIMIT_S, on_stdout=keep)
    lines = said.decode("ascii").replace(nonce, NONCE).splitlines(keepends=True)
    events = [[line for line in lines if f'"event":"{event}"' in line] for event in ("start", "evidence", "end")]
    if not all(events):
        raise KilnError(f"{host.name}: nothing to record")
    return Recording(ready.stdout, events[0][0], "".join(events[1]), host)


@contextlib.contextmanager
def running(folder: Path, recording: Recording, count: int) -> Iterator[Fleet]:
    """``count`` hosts that replay it, on :data:`ADDRESSES` addresses in turn."""
    folder.mkdir(mode=0o755)
    for name in ("ready", "start", "evidence"):
        (folder / name).write_text(getattr(recording, name), encoding="ascii")
    script = folder / "replay"
    script.write_text(SCRIPT.format(folder=shlex.quote(str(folder)), nonce=NONCE, items=recording.items))
    script.chmod(0o755)
    addresses = [sshd.LOOPBACK.format(number) for number in range(1, ADDRESSES + 1)]
    # No HOME: the login shell of whoever runs the bench may read a .bashrc there, which takes longer than all the rest.
    lines = ["SetEnv HOME=/nonexistent", f"ForceCommand {script}"]
    with sshd.listening(folder, dict.fromkeys(addresses, lines)) as access:
        one = target("", "", access, recording.target.expectation)
        targets = tuple(replace(one, name=f"r{n}", address=addresses[n % ADDRESSES]) for n in range(count))
        yield Fleet((), targets, access)
