"""systemd units as systemctl shows them: whole, cut short, of several kinds, and what is none."""

from __future__ import annotations

import pytest

from profiles.errors import ParseError
from validation.facts import services
from validation.facts.host import Unit
from validation.facts.services import Service

RUNNING = """● nvidia-persistenced.service - NVIDIA Persistence Daemon
     Loaded: loaded (/usr/lib/systemd/system/nvidia-persistenced.service; enabled; preset: enabled)
     Active: active (running) since Tue 2026-03-03 18:39:19 UTC; 1h 4min ago
    Process: 1206 ExecStart=/usr/bin/nvidia-persistenced --verbose (code=exited, status=0/SUCCESS)
   Main PID: 1207 (nvidia-persiste)
     CGroup: /system.slice/nvidia-persistenced.service
             └─1207 /usr/bin/nvidia-persistenced --verbose
"""
FAILED = """\N{MULTIPLICATION SIGN} nvidia-fabricmanager.service - NVIDIA fabric manager service
     Loaded: loaded (/lib/systemd/system/nvidia-fabricmanager.service; enabled; vendor preset: enabled)
     Active: failed (Result: exit-code) since Mon 2026-08-10 15:45:34 UTC; 5 days ago
        CPU: 27ms

Aug 10 15:45:34 n nv-fabricmanager[91]: interface version 580.95.05 doesn't match with driver version 580.105.08.
Aug 10 15:45:34 n systemd[1]: nvidia-fabricmanager.service: Failed with result 'exit-code'.
Aug 10 15:45:34 n systemd[1]: Failed to start NVIDIA fabric manager service.
"""
IDLE = FAILED.replace(
    "interface version 580.95.05 doesn't match with driver version 580.105.08.",
    "request to query NVSwitch device information failed with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]",
)
ROWS = """  UNIT                         LOAD      ACTIVE     SUB          DESCRIPTION
  nvidia-persistenced.service  loaded    active     running      NVIDIA Persistence Daemon
● nvidia-fabricmanager.service loaded    failed     failed       NVIDIA fabric manager service
  nvidia-dcgm.service          loaded    activating auto-restart NVIDIA DCGM service

LOAD   = Reflects whether the unit definition was properly loaded.
3 loaded units listed.
"""


def only(text: str) -> Service:
    (service,) = services.parse(text).services
    return service


def test_the_status_of_a_running_unit_is_read() -> None:
    assert only(RUNNING) == Service(Unit("nvidia-persistenced.service", "loaded", "active", "running", "enabled"))


def test_a_failed_unit_says_how_and_why() -> None:
    service = only(FAILED)
    assert (service.unit.active, service.result, service.idle) == ("failed", "exit-code", False)
    assert service.why == "interface version 580.95.05 doesn't match with driver version 580.105.08."


def test_a_fabric_manager_without_a_switch_is_idle() -> None:
    assert only(IDLE).idle


@pytest.mark.parametrize(
    ("line", "active", "sub", "result"),
    [
        ("active (exited) since Tue 2026-03-03 18:39:19 UTC; 1h ago", "active", "exited", ""),
        ("inactive (dead)", "inactive", "dead", ""),
        ("inactive (dead) since Tue 2026-03-03 18:39:19 UTC; 1h ago", "inactive", "dead", ""),
        ("activating (auto-restart) (Result: exit-code) since Tue; 3s ago", "activating", "auto-restart", "exit-code"),
        ("failed (Result: signal) since Mon 2026-08-10 15:45:34 UTC; 5 days ago", "failed", "failed", "signal"),
    ],
)
def test_every_state_is_read(line: str, active: str, sub: str, result: str) -> None:
    service = only(RUNNING.replace("active (running) since Tue 2026-03-03 18:39:19 UTC; 1h 4min ago", line))
    assert (service.unit.active, service.unit.sub, service.result) == (active, sub, result)


@pytest.mark.parametrize("mark", ["● ", "○ ", "\N{MULTIPLICATION SIGN} ", "* ", "x ", ""])
def test_the_mark_before_a_unit_may_be_any(mark: str) -> None:
    assert only(RUNNING.replace("● ", mark)).unit.active == "active"


@pytest.mark.parametrize(
    ("loaded", "load", "enabled"),
    [
        ("loaded (/usr/lib/systemd/system/x.service; static)", "loaded", "static"),
        ("loaded (/usr/lib/systemd/system/x.service; disabled; preset: disabled)", "loaded", "disabled"),
        ("masked (Reason: Unit x.service is masked.)", "masked", ""),
        ("not-found (Reason: Unit x.service not found.)", "not-found", ""),
    ],
)
def test_how_a_unit_is_loaded_is_read(loaded: str, load: str, enabled: str) -> None:
    whole = "loaded (/usr/lib/systemd/system/nvidia-persistenced.service; enabled; preset: enabled)"
    unit = only(RUNNING.replace(whole, loaded)).unit
    assert (unit.load, unit.enabled) == (load, enabled)


def test_several_units_and_one_that_is_not_there_are_told_apart() -> None:
    text = f"{RUNNING}\n{IDLE}\nUnit nvidia-dcgm.service could not be found.\n"
    found = services.parse(text)
    assert [(one.unit.name, one.unit.load, one.idle) for one in found.services] == [
        ("nvidia-persistenced.service", "loaded", False),
        ("nvidia-fabricmanager.service", "loaded", True),
        ("nvidia-dcgm.service", "not-found", False),
    ]
    assert found.fabric_manager is not None
    assert services.parse(RUNNING).fabric_manager is None


@pytest.mark.parametrize("text", [ROWS, "\n".join(ROWS.splitlines()[1:4])], ids=["whole", "grepped"])
def test_a_list_of_units_is_read_with_and_without_its_header(text: str) -> None:
    found = [(one.unit.name, one.unit.active, one.unit.sub) for one in services.parse(text).services]
    assert found == [
        ("nvidia-persistenced.service", "active", "running"),
        ("nvidia-fabricmanager.service", "failed", "failed"),
        ("nvidia-dcgm.service", "activating", "auto-restart"),
    ]


def test_properties_are_read_with_the_result() -> None:
    text = "Type=forking\nIPv6Count=2\nResult=signal\nId=a.service\nLoadState=loaded\n"
    text += "ActiveState=failed\nSubState=failed\n"
    assert only(text).result == "signal"
    assert [one.result for one in services.parse(f"{text}\n{text.replace('signal', 'success')}").services] == [
        "signal",
        "",
    ]


@pytest.mark.parametrize("word", ["active", "inactive", "failed", "activating"])
def test_a_word_alone_is_a_units_state(word: str) -> None:
    assert only(f"{word}\n").unit.active == word
    assert [one.unit.name for one in services.parse(f"active\n{word}\n").services] == ["unit 1", "unit 2"]


@pytest.mark.parametrize("text", [RUNNING, FAILED, ROWS, "failed\n", "Unit a.service could not be found.\n"])
def test_every_form_is_told(text: str) -> None:
    assert services.is_it(text)


@pytest.mark.parametrize("text", ["", "active GPUs: 8\n", "hello\nactive\n", "Loaded the driver\n"])
def test_other_texts_are_none(text: str) -> None:
    assert not services.is_it(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("\n".join(RUNNING.splitlines()[:2]), "no line 'Active:'"),
        (ROWS.replace("3 loaded", "4 loaded"), "4 units listed, 3 read"),
        ("a.service loaded active running A\nb.service loaded fail", "line 2: 'b.service loaded fail' is no whole row"),
        ("a.service loaded active running A\nb.service", "line 2: 'b.service' is no whole row"),
        ("Id=a.service\nLoadState=loaded\n", "no ActiveState"),
        ("hello\n", "no unit"),
    ],
)
def test_half_an_answer_is_refused(text: str, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        services.parse(text)
