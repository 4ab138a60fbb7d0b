"""``kiln baseline``: draft a profile from a host believed good."""

from __future__ import annotations

import datetime as dt
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from kiln import evidence_source, inventory
from kiln.output import write
from kiln.progress import progress
from profiles import catalog
from profiles.errors import ConfigError, KilnError, LookError, Problem
from profiles.models import Expectation
from validation import baseline
from validation.evidence import Bundle
from validation.facts.assemble import assemble
from validation.judge import judge_facts
from validation.runner import Options, validate
from validation.verdict import Finding, Verdict

HOW = "name either --hosts with --host, or --evidence"


@click.group(short_help="Draft a profile from a host believed good.")
def command() -> None:
    """Profiles of machines that the catalogue does not know: recorded from one host, reviewed by a person."""


@command.command()
@click.option("--hosts", metavar="FILE", type=click.Path(path_type=Path), help="The inventory that has the host.")
@click.option("--host", "name", metavar="NAME", help="The host's name in the inventory.")
@click.option("--evidence", metavar="DIR|FILE", type=click.Path(exists=True, path_type=Path), help="Or its evidence.")
@click.option("--type", "instance_type", required=True, metavar="TYPE", help="The name that the type is to have.")
@click.option("--accept-new", is_flag=True, help="Take whatever key answers, where the inventory has no hostKey.")
@click.option("-o", "--output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Not on stdout.")
def record(
    hosts: Path | None,
    name: str | None,
    evidence: Path | None,
    instance_type: str,
    accept_new: bool,
    output: Path | None,
) -> int:
    """Write the profile of TYPE as a draft, from what one host shows. Nothing is judged good by it: `reviewed: false`.

    Put the file TYPE.yaml into a folder of your own, review it, set `reviewed: true`, and name the folder with
    --profiles or KILN_PROFILES. Exits 1 where the host shows a fault: a faulty host is no baseline.
    """
    _require_new(instance_type)
    with _bundle(hosts, name, evidence, accept_new=accept_new) as (bundle, root):
        facts = assemble(bundle)
        _require_good(judge_facts(facts, Expectation(instance_type=instance_type, root=root), bundle.host))
        board = baseline.board_of(baseline.board_names(facts), catalog.default().boards())
        day = bundle.started[:10] or dt.datetime.now(dt.timezone.utc).date().isoformat()
        text = baseline.draft(facts, instance_type, baseline.Origin(bundle.host, day, board))
    _require_readable(text, instance_type)
    if output is None:
        click.echo(text, nl=False)
    else:
        write(output, text)
        click.echo(f"draft: {output}; review it, and set `reviewed: true`", err=True)
    return 0


def _require_new(instance_type: str) -> None:
    if not baseline.TYPE_NAME.match(instance_type):
        problem = Problem("--type", repr(instance_type), "lower-case letters, digits, '.', '_' and '-'")
        raise ConfigError("the type has no good name", [problem])
    if catalog.Catalog().load(instance_type) is not None:
        problem = Problem("--type", instance_type, "a name that the catalogue does not have yet")
        raise ConfigError("the catalogue has this type already", [problem])


@contextmanager
def _bundle(
    hosts: Path | None, name: str | None, evidence: Path | None, *, accept_new: bool
) -> Iterator[tuple[Bundle, str]]:
    """The evidence of the host, and the root below which it may have been read."""
    if evidence is not None and hosts is None and name is None:
        with evidence_source.opened(evidence) as folders:
            if len(folders) != 1:
                raise ConfigError(f"{evidence} has the evidence of {len(folders)} hosts; name the folder of one")
            bundle = Bundle.read(folders[0])
        yield bundle, bundle.root
    elif evidence is None and hosts is not None and name is not None:
        yield _gathered(hosts, name, accept_new=accept_new)
    else:
        raise ConfigError("it is not clear which host", remedy=HOW)


def _gathered(hosts: Path, name: str, *, accept_new: bool) -> tuple[Bundle, str]:
    targets = inventory.load(hosts, accept_new=accept_new)
    chosen = [target for target in targets if target.name == name]
    if not chosen:
        names = ", ".join(target.name for target in targets)
        raise ConfigError(f"no host in {hosts} has that name", [Problem("--host", name, f"one of {names}")])
    with tempfile.TemporaryDirectory(prefix="kiln-baseline-") as folder, progress() as shown:
        options = Options(keep_evidence=Path(folder), deadline_s=300.0)
        report = validate(chosen, options, progress=shown, cancel=threading.Event())
        found = [path.parent for path in Path(folder).glob("*/manifest.json")]
        # Another machine may be answering: the findings about who it is hold here too.
        if not found or any(f.check == "host.identity" and f.verdict is Verdict.FAIL for f in report.hosts[0].findings):
            raise LookError(f"{name}: {report.hosts[0].findings[0].message}", remedy=report.hosts[0].findings[0].remedy)
        return Bundle.read(found[0]), chosen[0].expectation.root


def _require_good(findings: tuple[Finding, ...]) -> None:
    bad = [finding for finding in findings if finding.verdict is Verdict.FAIL]
    if bad:
        listed = "\n".join(f"  - {finding.check} {finding.subject}: {finding.message}" for finding in bad)
        raise FaultyError(f"the host shows a fault, so it is no baseline:\n{listed}", remedy="Choose a good host.")


def _require_readable(text: str, instance_type: str) -> None:
    """The draft must be one that the catalogue reads: a draft nobody can load helps nobody."""
    with tempfile.TemporaryDirectory(prefix="kiln-draft-") as folder:
        (Path(folder) / f"{instance_type}.yaml").write_text(text, encoding="utf-8")
        catalog.Catalog(own=Path(folder)).load(instance_type)


class FaultyError(KilnError):
    """The host is not good (exit 1)."""

    exit_code = 1
