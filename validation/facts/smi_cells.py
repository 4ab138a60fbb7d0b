"""One line after the other of nvidia-smi's table: which cells it has, and what each says.

Cells are told by their column and must look like what that column holds; a cell that does not is a ParseError, since
then the columns are not where they are believed to be.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from profiles.errors import ParseError
from validation.facts.gpu import Ecc, Gpu
from validation.facts.missing import ABSENT, Missing, Reason
from validation.facts.smi_rows import GpuProcess
from validation.facts.text import number, pci_address, word

TOOL = "nvidia-smi"
BANNER = re.compile(
    r"NVIDIA-SMI\s+(?P<smi>\d\S*)\s+(?:Driver|KMD) Version:\s*(?P<driver>\S+)"
    r"(?:\s+CUDA (?:UMD )?Version:\s*(?P<cuda>\S+))?"
)
_RULE = re.compile(r"^[+|][-=+|]{5,}$")
_DOTS = re.compile(r"^(?:\[?(?:\.{3,}|…)\]?|\.{3,} ?(?:snip|omitted).*)$", re.IGNORECASE)
_HEADER = re.compile(
    r"Bus-Id|Memory-Usage|MIG M\.?|Persistence-M|Pwr:Usage|GPU-Util|Uncorr\. ECC|CUDA (?:UMD )?Version:"
)
_FIRST = re.compile(r"^(?P<index>\d+)\s+(?P<name>.*?)\s*\b(?P<mode>On|Off|N/A|WDDM|TCC|MCDM|ERR!)$")
_BUS = re.compile(
    r"^(?P<address>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]|N/A)"  # N/A: part of a Tegra, on no bus
    r"(?:\s+(?P<display>On|Off|N/A|ERR!))?$"
)
_SECOND = re.compile(
    r"^(?P<fan>\d+\s?%|N/A|ERR!)\s+(?P<temperature>\d+\s?C|N/A|ERR!)\s+(?P<state>P\d+|N/A|ERR!|Unknown)\s+"
    r"(?P<power>\d+\s?W|N/A|ERR!|Unknown Error)\s*/\s*(?P<limit>\d+\s?W|N/A|ERR!|Unknown Error)$"
)
_MEMORY = re.compile(r"^(?P<used>\d+)\s?Mi?B\s*/\s*(?P<total>\d+)\s?Mi?B$")
_LOAD = re.compile(r"^(?P<load>\d+\s?%|N/A|ERR!)\s+(?P<compute>\S.*)$")
_ECC = re.compile(r"^(?:\d+|N/A|On|Off|ERR!)$")
_MIG_MODE = re.compile(r"^(?P<mode>Enabled|Disabled|N/A|ERR!)(?P<pending>\*?)$")
_SLICE = re.compile(r"^(?P<gpu>\d+)\s+(?P<instance>\d+)\s+(?P<compute>\d+)\s+(?P<device>\d+)$")
_SLICE_ECC = re.compile(r"^(?P<sms>\d+)\s+(?P<ecc>\d+|N/A|ERR!)$")
_PROCESS = re.compile(
    r"^(?P<gpu>\d+)\s+(?:(?:N/A|\d+)\s+(?:N/A|\d+)\s+(?=\d+\s))?(?P<pid>\d+)\s+(?:[A-Z](?:\+[A-Z])*\s+)?(?P<name>.*?)"
    r"\s+(?P<memory>\d+\s?Mi?B|N/A)$"
)
_BRANDS = ("GeForce", "Quadro", "TITAN", "RTX", "Tesla", "GRID")
_PROCESSES = re.compile(r"^(?:Compute )?Processes:", re.IGNORECASE)


@dataclass(frozen=True)
class MigSlice:
    """One slice of the table of MIG devices: GPU, GPU instance, memory, and its own uncorrectable ECC errors."""

    gpu: int
    instance: int
    memory_total_mib: float | Missing = ABSENT
    uncorrected: int | Missing = ABSENT


@dataclass
class Row:
    """One GPU while its lines are read."""

    gpu: Gpu
    name: str
    errors: list[str] = field(default_factory=list)
    whole: bool = False


@dataclass
class Reading:
    """One table while its lines are read. ``place`` is where the reader is: head, gpus, mig, processes."""

    banner: re.Match[str] | None = None
    place: str = "head"
    rows: list[Row] = field(default_factory=list)
    slices: list[MigSlice] = field(default_factory=list)
    processes: list[GpuProcess] = field(default_factory=list)
    no_processes: Missing | None = None
    omitted: list[str] = field(default_factory=list)
    closed: bool = True  # a rule stands below the last row


def read(reading: Reading, at: int, line: str) -> None:
    if _DOTS.match(line):
        reading.omitted.append(f"line {at} says that lines were left out")
    elif _RULE.match(line.replace(" ", "")):
        reading.closed = True
    elif BANNER.search(line):
        reading.banner = BANNER.search(line)
    elif _PROCESSES.match(line):
        reading.place = "processes"  # pasted without its bar
    elif line.startswith("|") and (cells := _cells(line)):
        _cells_read(reading, at, line, cells)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _first_line(line: str) -> tuple[re.Match[str], re.Match[str], str] | None:
    cells = _cells(line) if line.lstrip().startswith("|") else []
    if len(cells) != 3:
        return None
    first, bus = _FIRST.match(cells[0]), _BUS.match(cells[1])
    return (first, bus, cells[2]) if first and bus else None


def _cells_read(reading: Reading, at: int, line: str, cells: list[str]) -> None:
    first = _first_line(line)
    if first:
        reading.place, reading.closed = "gpus", False
        reading.rows.append(_row(*first, at))
    elif _PROCESSES.match(cells[0]):
        reading.place = "processes"
    elif cells[0].startswith("MIG devices"):
        reading.place = "mig"
    elif reading.place == "gpus":
        if not _HEADER.search(line):
            _further(reading.rows[-1], cells, at)
    elif reading.place == "mig":
        _slice(reading, cells)
    elif reading.place == "processes":
        _process(reading, cells[0])


def _row(first: re.Match[str], bus: re.Match[str], ecc: str, at: int) -> Row:
    index, name, mode = int(first["index"]), first["name"], first["mode"]
    if not _ECC.match(ecc):
        raise ParseError(TOOL, at, f"GPU {index}: {ecc!r} stands where the count of ECC errors is")
    errors = [cell for cell, said in (("name", mode), ("display", bus["display"]), ("ECC", ecc)) if said == "ERR!"]
    whole_name = name and not name.endswith(("...", "…"))
    gpu = Gpu(
        index=index,
        name=word(name) if whole_name else ABSENT,
        brand=_brand(name),
        pci_address=pci_address(bus["address"]) or ABSENT,
        persistence={"On": True, "Off": False}.get(mode, ABSENT),
        ecc=_ecc(ecc),
    )
    return Row(gpu, name, errors)


def _brand(name: str) -> str | Missing:
    """By the first words of a name, which are there where the rest is cut."""
    words = name.removeprefix("NVIDIA ").split()
    first = words[0].rstrip(".…") if words else ""
    return first if first in _BRANDS else ABSENT


def _ecc(cell: str) -> Ecc:
    """``On`` stands there in MIG mode, where each slice counts its own errors; ``Off`` is ECC switched off."""
    if cell.isdigit():
        return Ecc(enabled=True, volatile_uncorrected=int(cell))
    if cell in ("On", "Off"):
        return Ecc(cell == "On", volatile_uncorrected=ABSENT if cell == "On" else Missing(Reason.NOT_APPLICABLE, "Off"))
    said = _missing(cell)
    return Ecc(enabled=said if said.reason is Reason.NOT_APPLICABLE else ABSENT, volatile_uncorrected=said)


def _further(row: Row, cells: list[str], at: int) -> None:
    """The second line of a GPU (fan, temperature, power, memory, load), or its third (MIG mode)."""
    where = f"GPU {row.gpu.index}"
    if row.whole:
        mode = _MIG_MODE.match(cells[-1])
        if any(cells[:-1]) or (cells[-1] and not mode):
            raise ParseError(TOOL, at, f"{where}: {' | '.join(cells)[:60]!r} is no MIG mode")
        if mode:
            enabled, pending = _mig(mode)
            row.gpu = replace(row.gpu, mig_enabled=enabled, mig_pending=pending)
            row.errors += ["MIG mode"] if mode["mode"] == "ERR!" else []
        return
    second = _SECOND.match(cells[0])
    if second is None or len(cells) != 3:
        raise ParseError(TOOL, at, f"{where}: {cells[0][:60]!r} is not fan, temperature, state and power")
    load, memory = _LOAD.match(cells[2]), _MEMORY.match(cells[1])
    if load is None or not (memory or cells[1] in ("N/A", "Not Supported", "ERR!") or "N/A" in cells[1]):
        raise ParseError(TOOL, at, f"{where}: {cells[1][:40]!r} and {cells[2][:40]!r} are not memory and load")
    said = {**second.groupdict(), "load": load["load"], "compute mode": load["compute"], "memory": cells[1]}
    row.errors += [name for name, cell in said.items() if "ERR!" in cell or cell == "Unknown Error"]
    gone = Missing(Reason.FAULT, cells[1]) if "ERR!" in cells[1] else Missing(Reason.NOT_APPLICABLE, cells[1])
    row.gpu = replace(
        row.gpu,
        temperature_c=number(second["temperature"], "C", TOOL, f"{where} temperature"),
        # A power cell of ERR! is read again by hand, see tool.smi_table: some boards print one now and then.
        power_draw_w=_watts(second["power"], where),
        power_limit_w=_watts(second["limit"], where),
        memory_used_mib=float(memory["used"]) if memory else gone,
        memory_total_mib=float(memory["total"]) if memory else gone,
        compute_mode=word(load["compute"]),
    )
    row.whole = True


def _watts(cell: str, where: str) -> float | Missing:
    value = number(cell, "W", TOOL, f"{where} power")
    return ABSENT if isinstance(value, Missing) and value.reason is Reason.FAULT else value


def _mig(mode: re.Match[str]) -> tuple[bool | Missing, bool | Missing]:
    """``Enabled*`` is on now and will be off after a reset, or the other way about."""
    if mode["mode"] not in ("Enabled", "Disabled"):
        value = word(mode["mode"])
        return (value if isinstance(value, Missing) else ABSENT), ABSENT
    on = mode["mode"] == "Enabled"
    return on, on is not bool(mode["pending"])


def _slice(reading: Reading, cells: list[str]) -> None:
    who = _SLICE.match(cells[0])
    counts = _SLICE_ECC.match(cells[2]) if len(cells) > 2 else None
    if who is None or counts is None:
        return
    memory = _MEMORY.match(cells[1])
    errors: int | Missing = int(counts["ecc"]) if counts["ecc"].isdigit() else _missing(counts["ecc"])
    total = float(memory["total"]) if memory else ABSENT
    reading.slices.append(MigSlice(int(who["gpu"]), int(who["instance"]), total, errors))


def _missing(cell: str) -> Missing:
    value = word(cell)
    return value if isinstance(value, Missing) else Missing(Reason.COULD_NOT_LOOK, cell)


def _process(reading: Reading, cell: str) -> None:
    match = _PROCESS.match(cell)
    reading.closed = False
    if match:
        memory = number(match["memory"].replace("MB", "MiB"), "MiB", TOOL, "used memory")
        reading.processes.append(GpuProcess(int(match["pid"]), word(match["name"]), f"GPU{match['gpu']}", memory))
    elif "Not Supported" in cell or "Insufficient Permissions" in cell:
        reading.no_processes = _missing("Not Supported" if "Not Supported" in cell else "Insufficient Permissions")
