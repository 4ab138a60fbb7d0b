"""systemd units as ``systemctl`` shows them: ``status``, ``show``, ``list-units`` and ``is-active``."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from profiles.errors import ParseError
from validation.facts import systemctl
from validation.facts.host import Unit
from validation.facts.text import lines

TOOL = "systemctl"
_KINDS = r"(?:service|socket|timer|path|target|mount|device|slice|scope|swap)"
_HEAD = re.compile(rf"^(?:(?:[^\w\s/]\S{{0,2}}|x) )?(?P<name>[\w@.:\\-]+\.{_KINDS})(?: - (?P<title>.*))?$")
_LOADED = re.compile(r"^Loaded: (?P<load>[\w-]+)(?: \((?P<rest>.*)\))?")
_ACTIVE = re.compile(
    r"^Active: (?P<active>[\w-]+)(?: \((?P<sub>[\w-]+)\))?(?: \(Result: (?P<result>[\w-]+)\))?(?: since .*)?$"
)
_STATES = r"active|inactive|failed|activating|deactivating|reloading|maintenance"
_ROW = re.compile(
    rf"^(?:(?:[^\w\s/]\S{{0,2}}|x) +)?(?P<name>[\w@.:\\…-]+\.{_KINDS}) +(?P<load>loaded|not-found|masked|error) +"
    rf"(?P<active>{_STATES}) +(?P<sub>[\w-]+)(?: +\S.*)?$"
)
_ROW_BEGUN = re.compile(
    rf"^(?:(?:[^\w\s/]\S{{0,2}}|x) +)?[\w@.:\\…-]+\.{_KINDS}(?: +(?:loaded|not-found|masked|error)\b.*)?$"
)
_COUNT = re.compile(r"^(?P<count>\d{1,9}) loaded units listed\.")
_ABSENT = re.compile(rf"Unit (?P<name>[\w@.:\\-]+\.{_KINDS}) could not be found\.")
_WORD = re.compile(rf"^(?:{_STATES}|unknown)$")
_RESULT = re.compile(r"^Result=(?P<result>\S+)$", re.M)
# Fabric Manager ends at once where there is no NVSwitch to manage, which systemd calls a failure.
_NOTHING_TO_DO = re.compile(r"NV_WARN_NOTHING_TO_DO")
# Messages of the journal below a status that say why it failed.
_WHY = re.compile(r"(?::|\]) (?P<why>[^:]*(?:doesn't match with driver|failed with error|[Ff]ailed to (?!start)).*)$")


@dataclass(frozen=True)
class Service:
    """One unit. ``result`` is systemd's word for how it ended, ``why`` the last message below it that names a cause.

    ``idle`` is true for a Fabric Manager that ended because the machine has no NVSwitch.
    """

    unit: Unit
    result: str = ""
    why: str = ""
    idle: bool = False


@dataclass(frozen=True)
class Services:
    """Every unit of the text, in its order."""

    services: tuple[Service, ...]

    @property
    def fabric_manager(self) -> Unit | None:
        """Fabric Manager's unit, where it is among them."""
        return next((one.unit for one in self.services if one.unit.name.startswith("nvidia-fabricmanager")), None)


def is_it(text: str) -> bool:
    """True for the output of systemctl in one of its four forms."""
    found = [line.strip() for line in lines(text) if line.strip()]
    if any(line.startswith(("LoadState=", "ActiveState=")) or _ABSENT.search(line) for line in found):
        return True
    if found and all(_WORD.match(line) for line in found):
        return True
    return any(_LOADED.match(line) for line in found) or any(_ROW.match(line) for line in found)


def parse(text: str) -> Services:
    """Raises ParseError where a unit has no state, or fewer units are listed than the list itself counts."""
    found = [line.strip() for line in lines(text)]
    if any(line.startswith(("LoadState=", "ActiveState=")) for line in found):
        return _shown(text)
    for read in (_statuses, _rows, _words):
        services = read(found)
        if services:
            return Services(services)
    raise ParseError(TOOL, 0, "no unit")


def _shown(text: str) -> Services:
    results = [match["result"] for match in _RESULT.finditer("\n".join(lines(text)))]
    units = systemctl.parse_all(text)
    same = results if len(results) == len(units) else [""] * len(units)
    return Services(
        tuple(Service(unit, "" if word == "success" else word) for unit, word in zip(units, same, strict=True))
    )


def _statuses(found: list[str]) -> tuple[Service, ...]:
    """``systemctl status``: of each unit its name, what is loaded, its state, and the end of its journal."""
    services: list[Service] = []
    for number, line in enumerate(found, start=1):
        absent = _ABSENT.search(line)
        if absent:
            services.append(Service(Unit(absent["name"], "not-found", "inactive", "dead")))
        head = _HEAD.match(line)
        if head and _is_status(found, number):
            services.append(_status(head["name"], found[number:], number))
    return tuple(services)


def _is_status(found: list[str], at: int) -> bool:
    return any(_LOADED.match(line) or _ACTIVE.match(line) for line in found[at : at + 4])


def _status(name: str, below: list[str], number: int) -> Service:
    end = next((at for at, line in enumerate(below) if _HEAD.match(line) and _is_status(below, at + 1)), len(below))
    own = below[:end]
    loaded = next((match for line in own if (match := _LOADED.match(line))), None)
    active = next((match for line in own if (match := _ACTIVE.match(line))), None)
    if active is None:
        raise ParseError(TOOL, number, f"{name} has no line 'Active:': the text is cut short")
    parts = [part.strip() for part in (loaded["rest"] or "").split(";")] if loaded else []
    enabled = parts[1] if len(parts) > 1 else parts[0] if parts and parts[0] == "static" else ""
    unit = Unit(
        name,
        loaded["load"] if loaded else "loaded",
        active["active"],
        active["sub"] or ("dead" if active["active"] == "inactive" else active["active"]),
        enabled.partition(":")[0],
    )
    whys = [match["why"] for line in own if (match := _WHY.search(line))]
    service = Service(unit, active["result"] or "", whys[-1][:200] if whys else "")
    return replace(service, idle=any(_NOTHING_TO_DO.search(line) for line in own))


def _rows(found: list[str]) -> tuple[Service, ...]:
    """``systemctl list-units``, with or without its header."""
    matches = [match for line in found if (match := _ROW.match(line))]
    for number, line in enumerate(found, start=1):
        if matches and _ROW_BEGUN.match(line) and not _ROW.match(line):
            raise ParseError(TOOL, number, f"{line[:80]!r} is no whole row: the text is cut short")
    counts = [int(match["count"]) for line in found if (match := _COUNT.match(line))]
    if counts and counts[0] != len(matches):
        raise ParseError(TOOL, 0, f"{counts[0]} units listed, {len(matches)} read: the text is cut short")
    return tuple(Service(Unit(m["name"], m["load"], m["active"], m["sub"])) for m in matches)


def _words(found: list[str]) -> tuple[Service, ...]:
    """``systemctl is-active``: one word a unit, and no name."""
    words = [line for line in found if line]
    if not words or not all(_WORD.match(word) for word in words):
        return ()
    many = len(words) > 1
    return tuple(
        Service(Unit(f"unit {number}" if many else "the unit", "loaded", word, word))
        for number, word in enumerate(words, start=1)
    )
