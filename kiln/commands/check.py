"""``kiln check``: judge evidence that was captured earlier, or elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kiln import evidence_source
from kiln.output import Outputs, report_options
from kiln.user_profiles import profiles_option
from profiles import catalog
from profiles.errors import ConfigError, Problem
from profiles.expectation import expect
from profiles.models import Expectation
from validation import uniform, unit_memory
from validation.evidence import AFTER_BURN_IN, Bundle
from validation.facts.assemble import assemble
from validation.facts.store import Facts
from validation.host_findings import after_load, noticed
from validation.judge import judge, judge_facts
from validation.report.model import HostReport, StackReport
from validation.verdict import Finding, combine, combine_hosts


@click.command(short_help="Judge a captured evidence bundle.")
@click.argument("source", metavar="DIR|FILE", type=click.Path(exists=True, path_type=Path))
@click.option("--profile", required=True, metavar="TYPE", help="The instance type that the host must be.")
@click.option("--software", default="unpinned", show_default=True, metavar="NAME", help="Software profile.")
@click.option("--driver", metavar="VERSION", help="Driver version or branch that must be there.")
@click.option("--cuda", metavar="VERSION", help="CUDA toolkit that must be there.")
@click.option("--efa", "efa_count", type=click.IntRange(min=0), default=0, show_default=True, help="EFAs asked for.")
@click.option("--mig", is_flag=True, help="MIG mode was asked for.")
@click.option("--persistence/--no-persistence", default=True, help="Persistence mode was asked for (it is by default).")
@click.option("--ecc/--no-ecc", default=None, help="ECC was asked for (it is where the board has it).")
@click.option(
    "--power-limit", "power_limit_w", type=click.FloatRange(min=1), metavar="W", help="Power limit asked for."
)
@click.option("--evidence-root", "root", default="/", show_default=True, metavar="PATH", help="Where it may be read.")
@profiles_option
@report_options
def command(source: Path, profile: str, **options: Any) -> int:
    """Judge evidence as `kiln validate --keep-evidence` writes it: one bundle, a folder of bundles, or a .tar.gz of it.

    Exits with the verdict: 0 healthy, 1 FAIL, 3 UNKNOWN.
    """
    outputs = Outputs.of(options)
    if catalog.load(profile) is None:
        problem = Problem("--profile", profile, f"one of {', '.join(catalog.types())}")
        way = f"`kiln baseline record --evidence {source} --type {profile}` drafts one, to be reviewed"
        raise ConfigError("unknown profile", [problem], remedy=way)
    expected = expect(profile, **options)
    with evidence_source.opened(source) as folders:
        hosts = tuple(_judged(folder, expected) for folder in folders)
    report = StackReport(combine_hosts(host.verdict for host in hosts), hosts, title=source.name)
    return outputs.deliver(uniform.compared(report))


def _judged(folder: Path, expected: Expectation) -> HostReport:
    bundle = Bundle.read(folder)
    expected = unit_memory.read_beside_evidence(expected, folder)
    burnt_in = "quick" if "burn-in" in bundle.items else "none"  # what was measured is judged, as it was online
    expected = expected.model_copy(update={"burn_in": burnt_in})
    facts = assemble(bundle)
    findings = _findings(bundle, facts, expected)
    if (folder / AFTER_BURN_IN / "manifest.json").exists():
        after = Bundle.read(folder / AFTER_BURN_IN)
        passive = expected.model_copy(update={"burn_in": "none"})
        findings = after_load(findings, _findings(after, assemble(after), passive))
    return HostReport(
        host=bundle.host,
        address="",
        instance_id="",
        instance_type=expected.instance_type,
        verdict=combine(findings),
        findings=findings,
        inventory=uniform.inventory_of(facts),
    )


def _findings(bundle: Bundle, facts: Facts, expected: Expectation) -> tuple[Finding, ...]:
    if not bundle.complete:
        return judge(bundle, expected, host=bundle.host)
    told = (noticed(bundle.host, bundle.notes),) if bundle.notes else ()
    return (*told, *judge_facts(facts, expected, bundle.host))
