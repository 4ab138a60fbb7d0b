from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from kiln.engine import Engine, Event, Run
from profiles.errors import CloudError, ConfigError, KilnError


def engine(folder: Path, script: str) -> Engine:
    """An engine whose command line is a shell script; the real one is asked in tests/system/test_cli.py."""
    cli = folder / "pulumi"
    cli.write_text(f"#!/bin/sh\n{script}\n")
    cli.chmod(0o755)
    return Engine(cli=cli, directory=folder, environment=dict(os.environ))


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("error: incorrect passphrase", ConfigError, "the passphrase of stack 'dev' is wrong"),
        ("error: get stack secrets manager: passphrase must be set with X", ConfigError, "no passphrase is set"),
        ("error: no stack named 'dev' found", ConfigError, "there is no stack 'dev' in this backend"),
        ("error: no Pulumi.yaml project file found (x)", ConfigError, "no Pulumi.yaml in /p or above it"),
        ("error: PULUMI_ACCESS_TOKEN must be set for login", ConfigError, "not logged in"),
        ('error: unable to open state directory "file:///x": no', ConfigError, "the state backend cannot be opened"),
        ("error: the stack is currently locked by 1 lock(s).", CloudError, "stack 'dev' is locked"),
        ("error: organization name must be 'organization'", ConfigError, "'dev' cannot be a stack's name"),
        (
            "error: yaml: unmarshal errors:\n  line 9: key defined",
            ConfigError,
            "cannot be read: yaml: unmarshal errors: line 9",
        ),
        ("error: invalid YAML file: could not unmarshal map: NaN", ConfigError, "correct Pulumi.dev.yaml in /p"),
        ("warning: x\nerror: something new\n", CloudError, "the Pulumi engine failed: something new"),
        ("", CloudError, "the Pulumi engine failed: it said nothing"),
    ],
)
def test_an_engine_s_error_becomes_one_message(text: str, kind: type[KilnError], message: str) -> None:
    error = Engine(Path("pulumi"), Path("/p"), {}).explain("dev", text)
    assert type(error) is kind
    assert message in str(error)


WRONG = "the stack's configuration is wrong; nothing was changed\n  - count: found 0; expected 1 or more"
REFUSED = "kiln:index:HealthGate resource 'gate': property hosts value {[]} has a problem: found none"


@pytest.mark.parametrize(
    ("messages", "kind", "said"),
    [
        ([WRONG], ConfigError, "count: found 0"),
        ([REFUSED, "Resource monitor has terminated, shutting down"], ConfigError, "found none"),
        (
            ["aws:ec2/vpc:Vpc resource 'n' has a problem: the sandbox at /s is not running (x)"],
            CloudError,
            "is not running",
        ),
        (["no resource plugin 'pulumi-resource-aws' found in the workspace"], ConfigError, "pulumi plugin install"),
        (["creating urn: no capacity", "update failed"], CloudError, "no capacity"),
        (["creating a: no capacity", "creating b: no quota"], CloudError, "no quota"),
        (["update failed"], CloudError, "update failed"),
    ],
)
def test_a_failed_run_is_told_with_its_cause_and_not_with_the_engine_s_remarks(
    messages: list[str], kind: type[KilnError], said: str
) -> None:
    error = Engine(Path("pulumi"), Path("/p"), {}).failure("dev", Run(code=255, errors={"u": messages}))
    assert type(error) is kind
    assert said in str(error)
    assert "terminated" not in str(error)
    assert messages[0].splitlines()[-1] in str(error)


def test_a_failed_run_names_the_resource_of_each_error() -> None:
    errors = {"urn:pulumi:d::p::aws:ec2/instance:Instance::node-2": ["no capacity"], "": ["no reason"]}
    error = Engine(Path("pulumi"), Path("/p"), {}).failure("dev", Run(code=255, errors=errors))
    assert str(error).splitlines()[1:] == ["  - node-2: no capacity", "  - no reason"]


def test_outputs_are_the_object_the_engine_prints(tmp_path: Path) -> None:
    assert engine(tmp_path, """echo '{"healthy": false}'""").outputs("dev") == {"healthy": False}


def test_a_secret_setting_is_masked(tmp_path: Path) -> None:
    text = """{"kiln:count": {"value": "2", "secret": false}, "kiln:key": {"secret": true}}"""
    assert engine(tmp_path, f"echo '{text}'").config("dev") == {"kiln:count": "2", "kiln:key": "[secret]"}


@pytest.mark.parametrize("printed", ["nonsense", "[1]"])
def test_output_that_is_no_object_is_an_error(tmp_path: Path, printed: str) -> None:
    with pytest.raises(CloudError, match="pulumi stack output --json"):
        engine(tmp_path, f"echo '{printed}'").outputs("dev")


def test_a_failed_call_raises_what_the_engine_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="passphrase of stack 'dev' is wrong"):
        engine(tmp_path, "echo 'error: incorrect passphrase' >&2; exit 1").outputs("dev")


WRITE_EVENTS = r"""
for word in "$@"; do case $word in --event-log=*) log=${word#--event-log=};; esac; done
printf '{"diagnosticEvent": {"severity": "error", "urn": "u::gate", "message": "first\\n"}}\n' >> "$log"
printf 'not an event\n{"diagnosticEvent": {"severity": "error", "ephemeral": true, "message": "second"}}\n' >> "$log"
printf '{"summaryEvent": {}}\n' >> "$log"
"""


def test_up_hands_on_every_event_and_keeps_the_errors(tmp_path: Path) -> None:
    seen: list[Event] = []
    run = engine(tmp_path, WRITE_EVENTS + "exit 7").operate("up", "dev", seen.append)
    assert run.code == 7
    assert run.errors == {"u::gate": ["first"]}
    assert [next(iter(event)) for event in seen] == ["diagnosticEvent", "diagnosticEvent", "summaryEvent"]
    assert run.messages() == ["first"]


def test_up_that_never_started_tells_the_engine_s_last_words(tmp_path: Path) -> None:
    run = engine(tmp_path, "echo 'error: no room' >&2; exit 255").operate("up", "dev", lambda _: None)
    assert run.messages() == ["it ended with status 255 and said no room"]


def test_up_that_only_prints_tells_what_it_printed(tmp_path: Path) -> None:
    run = engine(tmp_path, "echo 'panic: x'; exit 2").operate("up", "dev", lambda _: None)
    assert run.messages() == ["it ended with status 2 and said panic: x"]


def test_up_that_says_nothing_at_all_tells_its_status(tmp_path: Path) -> None:
    run = engine(tmp_path, "kill -9 $$").operate("up", "dev", lambda _: None)
    assert run.messages() == ["it ended with status -9 and said nothing"]


def test_the_engine_s_remark_on_the_exit_status_is_told_only_alone() -> None:
    remark = "an unhandled error occurred: program exited with non-zero exit code: 1"
    assert Run(errors={"": ["gate closed", remark]}).messages() == ["gate closed"]
    assert Run(errors={"": [remark]}).messages() == [remark]


def test_a_hang_up_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        run = engine(tmp_path, f"kill -HUP {os.getpid()}; exit 0").operate("up", "dev", lambda _: None)
        assert (run.code, run.interrupted) == (0, False)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_interrupt_is_passed_on_and_the_engine_is_waited_for(tmp_path: Path) -> None:
    trap = """trap 'echo "error: stopped in order" >&2; exit 255' INT"""
    script = f"{trap}; touch {tmp_path}/up; while :; do sleep 0.05; done"

    def interrupt() -> None:
        while not (tmp_path / "up").exists():
            ended.wait(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    ended = threading.Event()
    thread = threading.Thread(target=interrupt)
    thread.start()
    run = engine(tmp_path, script).operate("up", "dev", lambda _: None)
    thread.join()
    assert run.interrupted
    assert "stopped in order" in run.stderr
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
