"""Outputs as people paste them: with prompt and command, in a Markdown fence, indented, quoted, several in one text.

Only ``kiln explain`` takes texts apart like this. What the gate judges is the evidence as the probe recorded it.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from validation.facts.text import clean

_FENCE = re.compile(r"^\s*(?:`{3,}|~{3,})\s*[\w.+-]*\s*$")
# Tools whose outputs are explained here, and those that only carry another tool's output.
_TOOLS = (
    "nvidia-smi", "nvidia-ctk", "dcgmi", "dmesg", "journalctl", "lspci", "lscpu", "lsblk", "lsmod", "numactl", "nvme",
    "nvcc", "nvbandwidth", "gpu_burn", "gpu-fryer", "ibstat", "ibstatus", "ibv_devinfo", "ibv_devices", "ibdev2netdev",
    "rdma", "eadm", "fi_info", "mdadm", "systemctl", "stress-ng", "fio", "cat", "modinfo", "uname", "ls", "ethtool",
    "ip",
)  # fmt: skip
_CARRIERS = (
    "sudo",
    "kubectl",
    "docker",
    "podman",
    "nerdctl",
    "ssh",
    "srun",
    "watch",
    "env",
    "time",
    "timeout",
    "while",
)
_PROMPT = re.compile(
    r"^\s*(?:\(\S+\)\s*)?(?:"
    r"\[[^\]\n]{1,80}\]\s*[$#%>]"  # [root@node ~]#
    r"|[\w.-]+@[\w.-]+[^#$%\n]{0,80}[$#%>]"  # ubuntu@ip-10-0-0-1:~$
    r"|PS [^>\n]{0,80}>|[A-Z]:\\[^>\n]{0,80}>"  # PS C:\Users\me>
    r"|#{2,}|=+>|\\?[$#%>!]"  # a heading, $, \#, !
    r")\s*(?P<command>\S.*)$"
)
_BARE = re.compile(r"^\s*(?P<command>[\w./-]+(?:\.exe)?:?(?:\s.*)?)$")
_ARGUMENT = re.compile(r"-|\||>|$|2>|(?:topo|nvlink|vgpu|mig|diag|health|c2c|link|show|status|exec|run|cdi|list)\b")
# What a shell, sudo, ssh or kubectl says around the output.
_NOISE = re.compile(
    r"^\s*(?:\[sudo\] password for |Defaulted container |Warning: Permanently added |Connection to \S+ closed|"
    r"Last login: |Every [\d.]+s: |(?:srun|salloc): (?:job \d+ |Pending |Granted |Nodes |Relinquish)|"
    r"Unable to use a TTY|If you don't see a command prompt|Emulate Docker CLI|Pseudo-terminal will not )"
)
_RULER = re.compile(r"^\s*([#=_*~-])\1{9,}\s*$")  # between the outputs of a script that gathers them
# The prompt of a shell, with whatever was typed behind it, be it nothing.
_SHELL = re.compile(
    r"^\s*(?:\(\S+\)\s*)?(?:\[[\w.-]+@[^\]\n]{1,80}\]\s?[$#%]|[\w.-]+@[\w.-]+[^\s#$%]{0,80}\s?[$#%]|\$)"
    r"(?:\s+(?P<command>.*))?$"
)
_QUERY = re.compile(r"--query-[\w-]+[= ]\s*[\"']?(?P<fields>[\w.,]+)")
_PEERS = re.compile(r"\btopo\s+(?:-p2p|--p2pstatus)\b")
_QUOTE = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)  # of a mail or an issue: no tool begins a line so
_COMMENT = re.compile(r"^[ \t]*(?:#|//|\*)[ \t]?")
_ANY_TOOL = re.compile("|".join(map(re.escape, _TOOLS)))
_PASTE_MAX = 4 * 1024 * 1024  # characters: what is longer is a tool's own output, redirected
_COMMAND_MAX = 8192  # characters: --query-gpu with every field has 4000
_CONTINUED_MAX = 12  # lines of one command, each but the last ending in a backslash


@dataclass(frozen=True)
class Part:
    """One output of a paste and the command before it, as typed; ``""`` where none is shown."""

    command: str
    text: str


def parts(text: str) -> tuple[Part, ...]:
    """The outputs, told apart by fences and by the commands that were typed; the text itself where there are none."""
    if len(text) > _PASTE_MAX:
        return (Part("", text),)
    found: list[Part] = []
    for block in _blocks(plain(text)):
        found += _by_command(block)
    return tuple(part for part in found if part.text.strip()) or (Part("", text),)


def readings(part: Part) -> Iterator[str]:
    """The text of a part: as it stands, with a header, without indentation, not commented, below its command."""
    headed = _headed(part)
    yield headed
    flat = textwrap.dedent(headed.replace("\t", "    ")) if _indented(headed) else headed
    if flat != headed:
        yield flat
    lines = headed.split("\n")
    if all(_COMMENT.match(line) for line in lines if line.strip()):
        yield textwrap.dedent("\n".join(_COMMENT.sub("", line, count=1) for line in lines))
    if part.command:
        yield f"$ {part.command}\n{headed}"


def paragraphs(text: str) -> tuple[str, ...]:
    """The text cut at its empty lines."""
    return tuple(piece for piece in re.split(r"\n[ \t]*\n+", text) if piece.strip())


def plain(text: str) -> str:
    """Without what is not the tool's: colours, spaces that are none, entities of a web page, marks of a quotation."""
    content = clean(text).replace("\u00a0", " ").replace("\u200b", "")
    if "&lt;nvidia_smi_log" in content or "&lt;?xml" in content:
        content = html.unescape(content).replace("\u00a0", " ")
    return _QUOTE.sub("", content)


def _blocks(text: str) -> list[str]:
    """The pieces between Markdown fences."""
    pieces: list[list[str]] = [[]]
    for line in text.split("\n"):
        if _FENCE.match(line):
            pieces.append([])
        else:
            pieces[-1].append(line)
    return ["\n".join(piece) for piece in pieces]


def _by_command(block: str) -> list[Part]:
    command, lines, found = "", [], []
    pending = iter(block.split("\n"))
    for line in pending:
        whole = [line]
        while whole[-1].endswith("\\") and len(whole) < _CONTINUED_MAX:
            whole.append(next(pending, ""))
        typed = _typed(" ".join(piece.removesuffix("\\").strip() for piece in whole))
        if typed is None:
            lines += [piece for piece in whole if not _NOISE.match(piece)]
        else:
            found.append(Part(command, "\n".join(_unruled(lines))))
            command, lines = typed, []
    found.append(Part(command, "\n".join(_unruled(lines))))
    return found


def _unruled(lines: list[str]) -> list[str]:
    """Without the rulers before and behind the output, and what a script wrote between two of them: ``# TITLE``."""
    first, last = 0, len(lines)
    while first < last and (not lines[first].strip() or _RULER.match(lines[first])):
        first += 1
    comments = last
    while comments > first and (not lines[comments - 1].strip() or lines[comments - 1].lstrip().startswith("# ")):
        comments -= 1
    ruled = any(map(_RULER.match, lines[:first]))
    if ruled and comments == first:
        return []  # a title alone
    if comments > first and _RULER.match(lines[comments - 1]):
        ruled, last = True, comments - 1
    while ruled and last > first and not lines[last - 1].strip():
        last -= 1
    return lines[first:last] if ruled else lines


def _typed(line: str) -> str | None:
    """As :func:`typed_command`, and with a shell's prompt any command, ``""`` for none."""
    command = typed_command(line)
    shell = _SHELL.match(line) if command is None and len(line) <= _COMMAND_MAX else None
    return (shell["command"] or "").strip() if shell else command


def typed_command(line: str) -> str | None:
    """The command of a line that only shows what was typed, or None where the line is not such a one.

    >>> typed_command("[root@n1 ~]# nvidia-smi -L"), typed_command("sudo nvidia-smi nvlink -e")
    ('nvidia-smi -L', 'sudo nvidia-smi nvlink -e')
    >>> typed_command("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.") is None
    True
    """
    if len(line) > _COMMAND_MAX or not _ANY_TOOL.search(line):
        return None
    for pattern in (_PROMPT, _BARE):
        match = pattern.match(line)
        if match and _is_command(match["command"].strip().removeprefix("$ ")):
            return str(match["command"].strip().removeprefix("$ ").removesuffix(":"))
    return None


def _is_command(text: str) -> bool:
    words = text.removesuffix(":").split()
    if words and words[0] in _CARRIERS:
        return any(_tool(word) for word in words[1:])
    if not words or not _tool(words[0]):
        return False
    return len(words) == 1 or _ARGUMENT.match(words[1]) is not None or words[0] in ("cat", "ls", "ip", "journalctl")


def _tool(word: str) -> bool:
    return word.rpartition("/")[2].removesuffix(".exe") in _TOOLS


def _headed(part: Part) -> str:
    """With what only the command tells above it: the fields of a CSV without header, what a peer matrix is about."""
    if _PEERS.search(part.command):
        return f"$ {part.command}\n{part.text}"
    query = _QUERY.search(part.command)
    if query is None or "noheader" not in part.command:
        return part.text
    return f"{query['fields']}\n{part.text.lstrip()}"


def _indented(text: str) -> bool:
    return all(line[0] in " \t" for line in text.split("\n") if line.strip())
