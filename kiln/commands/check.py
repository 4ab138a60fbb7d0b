"""``kiln check``: judge evidence that was captured earlier, or elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kiln.output import Outputs, report_options
from profiles import catalog
from profiles.errors import ConfigError, Problem
from profiles.expectation import expect
from profiles.models import Expectation
from validation.evidence import Bundle
from validation.judge import judge
from validation.report.model import HostReport, StackReport
from validation.verdict import combine, combine_hosts


@click.command(short_help="Judge a captured evidence bundle.")
@click.argument("directory", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--profile", required=True, metavar="TYPE", help="The instance type that the host must be.")
@click.option("--software", default="unpinned", show_default=True, metavar="NAME", help="Software profile.")
@click.option("--driver", metavar="VERSION", help="Driver version or branch that must be there.")
@click.option("--cuda", metavar="VERSION", help="CUDA toolkit that must be there.")
@click.option("--efa", "efa_count", type=click.IntRange(min=0), default=0, show_default=True, help="EFAs asked for.")
@click.option("--mig", is_flag=True, help="MIG mode was asked for.")
@click.option("--evidence-root", "root", default="/", show_default=True, metavar="PATH", help="Where it may be read.")
@report_options
def command(directory: Path, profile: str, **options: Any) -> int:
    """Judge the evidence in DIR, as `kiln validate --keep-evidence` writes it: one bundle, or a folder of bundles.

    Exits with the verdict: 0 healthy, 1 FAIL, 3 UNKNOWN.
    """
    outputs = Outputs.of(options)
    if catalog.load(profile) is None:
        raise ConfigError("unknown profile", [Problem("--profile", profile, f"one of {', '.join(catalog.types())}")])
    expected = expect(profile, **options)
    hosts = tuple(_judged(Bundle.read(folder), expected) for folder in bundles(directory))
    return outputs.deliver(StackReport(combine_hosts(host.verdict for host in hosts), hosts, title=directory.name))


def bundles(directory: Path) -> tuple[Path, ...]:
    """The folder itself where it is a bundle, else the bundles one level below. Raises ConfigError for none."""
    if (directory / "manifest.json").exists():
        return (directory,)
    found = tuple(sorted(path.parent for path in directory.glob("*/manifest.json")))
    if not found:
        raise ConfigError(
            f"{directory}: no evidence: neither manifest.json nor folders with one",
            remedy="`kiln validate --keep-evidence DIR` writes evidence",
        )
    return found


def _judged(bundle: Bundle, expected: Expectation) -> HostReport:
    findings = judge(bundle, expected, host=bundle.host)
    return HostReport(
        host=bundle.host,
        address="",
        instance_id="",
        instance_type=expected.instance_type,
        verdict=combine(findings),
        findings=findings,
    )
