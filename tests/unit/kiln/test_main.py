from __future__ import annotations

import errno
import importlib
import io
import sys
from pathlib import Path

import click
import pytest

from kiln import __main__ as program
from profiles.errors import ConfigError, HostError, Problem


def run(monkeypatch: pytest.MonkeyPatch, error: BaseException | None, *words: str) -> int:
    """Run the program with one command, ``boom``, that raises the error."""

    @click.command()
    def boom() -> int:
        if error is not None:
            raise error
        return 3

    monkeypatch.setattr(program.Commands, "get_command", lambda *_: boom)
    return program.main([*words, "boom"])


def test_a_command_s_number_is_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, None) == 3


def test_a_configuration_error_is_one_message_and_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = ConfigError("the settings are wrong", [Problem("count", "0", "1 or more")], remedy="set count")
    assert run(monkeypatch, error) == 2
    assert capsys.readouterr().err == (
        "kiln: the settings are wrong\n  - count: found 0; expected 1 or more\n  -> set count\n"
    )


def test_what_could_not_be_looked_at_is_3(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, HostError("gpu-1", "reachable", "refused")) == 3
    assert "stage 'reachable' not reached" in capsys.readouterr().err


def test_an_interrupt_is_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, KeyboardInterrupt()) == 130
    assert capsys.readouterr().err.strip() == "kiln: interrupted"


def test_a_defect_is_70_and_one_line_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, ZeroDivisionError("a\nb")) == 70
    assert capsys.readouterr().err == (
        "kiln: defect: ZeroDivisionError: a b\n  -> run it again as `kiln --debug ...` and report the traceback\n"
    )


def test_debug_shows_the_traceback_and_keeps_the_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, ZeroDivisionError("x"), "--debug") == 70
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_debug_can_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KILN_DEBUG", "1")
    assert run(monkeypatch, ConfigError("x")) == 2
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["nonsense"], ["up"], ["check", "--nonsense"], ["report", "--format", "pdf", "-"]])
def test_wrong_usage_is_2_and_says_how_to_get_help(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(words) == 2
    assert "--help" in capsys.readouterr().err


def test_no_command_shows_the_commands_and_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main([]) == 2
    assert "Commands:" in capsys.readouterr().err


def test_help_lists_every_command_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {name} " in text for name in program.COMMANDS)
    assert "130 interrupted" in " ".join(text.split())


@pytest.mark.parametrize("name", program.COMMANDS)
def test_a_command_says_the_same_in_the_list_and_in_its_module(name: str) -> None:
    command = importlib.import_module(f"kiln.commands.{name}").command
    assert isinstance(command, click.Command)
    assert command.short_help == program.COMMANDS[name]
    assert command.help


def test_every_module_of_a_command_is_in_the_list() -> None:
    folder = Path(program.__file__).parent / "commands"
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert modules == set(program.COMMANDS)


def test_every_command_has_a_json_form_or_makes_no_result() -> None:
    for name in program.COMMANDS:
        command = importlib.import_module(f"kiln.commands.{name}").command
        if isinstance(command, click.Group) or name == "report":  # report: --format json
            continue
        assert "json" in {parameter.name for parameter in command.params}, name


def test_a_reader_that_left_is_no_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdout", "stderr"):  # click wraps both
        monkeypatch.setattr(sys, name, io.StringIO())
    assert run(monkeypatch, BrokenPipeError(errno.EPIPE, "Broken pipe")) == 130
