"""The real Pulumi engine, through its command line: one call each, errors turned into one message with a way out."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from profiles.errors import CloudError, ConfigError, KilnError

Event = Mapping[str, Any]
POLL_S = 0.1
UNHANDLED = "an unhandled error occurred: program exited with non-zero exit code"
# What the engine adds to an error that says why; no cause by itself.
_REMARKS = (
    UNHANDLED,
    "update failed",
    "destroy failed",
    "Resource monitor has terminated",
    "resource monitor shut down",
)

# What the engine (pulumi 3.274.1) says, and the way out; tests/system/test_cli.py asks the real one.
_CAUSES: tuple[tuple[str, type[KilnError], str, str], ...] = (
    (
        r"incorrect passphrase",
        ConfigError,
        "the passphrase of stack '{stack}' is wrong",
        "set PULUMI_CONFIG_PASSPHRASE (or PULUMI_CONFIG_PASSPHRASE_FILE) to the one the stack was created with",
    ),
    (
        r"passphrase must be set",
        ConfigError,
        "stack '{stack}' keeps secrets, and no passphrase is set",
        "set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE",
    ),
    (
        r"no stack named",
        ConfigError,
        "there is no stack '{stack}' in this backend",
        "`pulumi stack ls` lists the stacks; `pulumi stack init {stack}` makes one",
    ),
    (
        r"no Pulumi\.yaml project file found",
        ConfigError,
        "no Pulumi.yaml in {directory} or above it",
        "run it in the project's folder, or name that with --cwd",
    ),
    (
        r"PULUMI_ACCESS_TOKEN must be set",
        ConfigError,
        "pulumi is not logged in to a backend",
        "`pulumi login --local` keeps state on this machine; PULUMI_BACKEND_URL names any other place",
    ),
    (
        r"unable to open state directory|could not read bucket|no such bucket",
        ConfigError,
        "the state backend cannot be opened: {text}",
        "check PULUMI_BACKEND_URL",
    ),
    (
        r"currently locked|conflict: Another update",
        CloudError,
        "stack '{stack}' is locked: another update runs, or one was killed",
        "wait for the other update; if none runs, `pulumi cancel` removes the lock",
    ),
    (
        r"organization name must be|invalid stack name|stack names? (may|cannot|must)",
        ConfigError,
        "'{stack}' cannot be a stack's name: {text}",
        "`pulumi stack ls` lists the stacks",
    ),
    (
        r"yaml: |invalid YAML file|could not unmarshal",
        ConfigError,
        "the configuration of stack '{stack}' cannot be read: {text}",
        "correct Pulumi.{stack}.yaml in {directory}",
    ),
    (
        r"the sandbox at .* is not running",
        CloudError,
        "{text}",
        "or, to leave the sandbox, open a shell without the variables of `kiln sandbox env`",
    ),
    (
        r"no resource plugin '",
        ConfigError,
        "{text}",
        '`pulumi plugin install` in {directory} gets it; for the sandbox: eval "$(kiln sandbox env)"',
    ),
    (
        r"^the stack's configuration is wrong",
        ConfigError,
        "{text}",
        "",
    ),
    (
        r"^\S+ resource '[^']*'(:| has a problem:)",
        ConfigError,
        "{text}",
        "correct it in the program",
    ),
    (
        r"missing required configuration|Stack .* is missing configuration|not of type|validating stack config",
        ConfigError,
        "the configuration of stack '{stack}' is wrong: {text}",
        "`kiln plan` lists every problem; `pulumi config set KEY VALUE` sets a value",
    ),
)


@dataclass
class Run:
    """How one engine run ended. ``errors``: its error diagnostics by resource URN, in order of appearance."""

    code: int = 0
    interrupted: bool = False
    errors: dict[str, list[str]] = field(default_factory=dict)
    stderr: str = ""
    stdout: str = ""

    def messages(self) -> list[str]:
        """The errors as texts; the engine's own remark that the program failed only where there is nothing else."""
        found = [text for texts in self.errors.values() for text in texts]
        told = [text for text in found if not text.startswith(_REMARKS)]
        printed = next((_last_error(text) for text in (self.stderr, self.stdout) if text.strip()), "nothing")
        return told or found or [f"it ended with status {self.code} and said {printed}"]

    def named(self, message: str) -> str:
        """The message, after the name of the resource that it is about; the stack's own stand alone."""
        urn = next((urn for urn, texts in self.errors.items() if message in texts), "")
        name = "" if "pulumi:pulumi:Stack" in urn else urn.split("::")[-1]
        return f"{name}: {message}" if name else message


@dataclass(frozen=True)
class Engine:
    """``cli`` is the pulumi executable, ``directory`` the project's folder, ``environment`` what the engine runs in."""

    cli: Path
    directory: Path
    environment: Mapping[str, str]

    def outputs(self, stack: str) -> dict[str, Any]:
        """The outputs of a stack, secret ones masked. Raises KilnError as the engine's error says."""
        return dict(self._json(stack, "stack", "output", "--json"))

    def config(self, stack: str) -> dict[str, str]:
        """The configuration of a stack as text by full key (``kiln:count``); a secret value reads ``[secret]``."""
        entries = self._json(stack, "config", "--json")
        return {key: entry.get("value", "[secret]") for key, entry in entries.items()}

    def operate(self, verb: str, stack: str, on_event: Callable[[Event], None]) -> Run:
        """Run ``pulumi up`` or ``pulumi destroy`` to its end, handing each event to ``on_event`` (in another thread).

        SIGINT and SIGTERM are passed on once each: the engine then stops what it can and saves its state.
        """
        with tempfile.TemporaryDirectory(prefix="kiln-") as folder:
            log, printed = Path(folder) / "events.jsonl", Path(folder) / "stdout"
            flags = ("--yes", "--skip-preview", "--non-interactive", "--color=never", f"--event-log={log}")
            with printed.open("wb") as stdout:
                process = subprocess.Popen(
                    [str(self.cli), verb, *flags, f"--stack={stack}"],
                    cwd=self.directory,
                    env={**self.environment, "PULUMI_DEBUG_COMMANDS": "true"},  # without it there is no --event-log
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=subprocess.PIPE,
                    text=True,
                    errors="replace",
                    start_new_session=True,  # else Ctrl-C on a terminal reaches it twice, and the second one kills it
                )
            run = Run()
            ended = threading.Event()
            reader = threading.Thread(target=_follow, args=(log, run, on_event, ended), daemon=True)
            reader.start()
            with _forwarding(process, run):
                run.stderr = process.communicate()[1]
            ended.set()
            reader.join()
            run.stdout = printed.read_text(encoding="utf-8", errors="replace")
        run.code = process.returncode
        return run

    def explain(self, stack: str, text: str) -> KilnError:
        """The error that the text of a call stands for."""
        return self._cause(stack, text, _last_error(text)) or CloudError(
            f"the Pulumi engine failed: {_last_error(text)}"
        )

    def failure(self, stack: str, run: Run) -> KilnError:
        """Why a run failed, with all that it said."""
        if not run.errors:
            return self.explain(stack, run.stderr or run.stdout)
        messages = run.messages()
        known = (self._cause(stack, text, text) for text in messages)
        return next((error for error in known if error), None) or CloudError(
            "the Pulumi engine failed:\n  - " + "\n  - ".join(map(run.named, messages))
        )

    def _cause(self, stack: str, text: str, shown: str) -> KilnError | None:
        values = {"stack": stack, "directory": self.directory, "text": shown}
        for pattern, kind, message, remedy in _CAUSES:
            if re.search(pattern, text):
                return kind(message.format(**values), remedy=remedy.format(**values))
        return None

    def call(self, stack: str, *arguments: str) -> str:
        """What ``pulumi ARGUMENTS --stack STACK`` prints. Raises KilnError as the engine's error says."""
        done = subprocess.run(
            [str(self.cli), *arguments, "--non-interactive", f"--stack={stack}"],
            cwd=self.directory,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            raise self.explain(stack, done.stderr)
        return done.stdout

    def _json(self, stack: str, *arguments: str) -> dict[str, Any]:
        text = self.call(stack, *arguments)
        try:
            data = json.loads(text)
        except ValueError as error:
            raise CloudError(f"pulumi {' '.join(arguments)}: not JSON: {text[:200]!r}") from error
        if not isinstance(data, dict):
            raise CloudError(f"pulumi {' '.join(arguments)}: expected an object, found {type(data).__name__}")
        return data


def _last_error(text: str) -> str:
    """The last ``error:`` line of an engine's stderr, with what follows a colon at its end; else its last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [index for index, line in enumerate(lines) if line.startswith("error:")]
    if not errors:
        return (lines or ["it said nothing"])[-1]
    said = lines[errors[-1]].removeprefix("error:").strip()
    return " ".join([said, *lines[errors[-1] + 1 :]]) if said.endswith(":") else said


def _follow(log: Path, run: Run, on_event: Callable[[Event], None], ended: threading.Event) -> None:
    """Read the event log as it grows; at the end, once more to its end."""
    rest = ""
    position = 0
    while True:
        last = ended.wait(POLL_S)
        if log.exists():
            with log.open(encoding="utf-8", errors="replace") as file:
                file.seek(position)
                rest += file.read()
                position = file.tell()
        *lines, rest = rest.split("\n")
        for text in lines:
            _handle(text, run, on_event)
        if last:
            return


def _handle(text: str, run: Run, on_event: Callable[[Event], None]) -> None:
    try:
        event = json.loads(text)
    except ValueError:
        return  # a line of a later version: progress only, the verdict does not come from here
    diagnostic = event.get("diagnosticEvent", {})
    if diagnostic.get("severity") == "error" and not diagnostic.get("ephemeral"):
        run.errors.setdefault(diagnostic.get("urn", ""), []).append(diagnostic.get("message", "").strip())
    on_event(event)


@contextlib.contextmanager
def _forwarding(process: subprocess.Popen[str], run: Run) -> Iterator[None]:
    def forward(_signal: int, _frame: FrameType | None) -> None:
        run.interrupted = True
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # What is ignored stays so: nohup and background jobs of a script mean it.
    numbers = [n for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) != signal.SIG_IGN]
    before = {number: signal.signal(number, forward) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
