"""``kiln report``: a JSON report in another format."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kiln.output import code, show, write
from kiln.textfile import read_text
from validation.report import document
from validation.report.formats import FORMATS


@click.command(short_help="Write a JSON report in another format.")
@click.argument("file", metavar="FILE|-")
@click.option("--format", "name", type=click.Choice(list(FORMATS)), default="table", show_default=True)
@click.option("-o", "--output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Not on stdout.")
def command(file: str, name: str, output: Path | None) -> int:
    """Read the report FILE (what --json printed; - is stdin) and write it in another format.

    Exits as the report's own verdict says: 0 healthy, 1 FAIL, 3 UNKNOWN. A report that was edited to look better than
    its findings is refused.
    """
    report = document.read(read_text(file))
    if output is not None:
        write(output, FORMATS[name](report))
    elif name == "table":
        show(report)
    else:
        sys.stdout.write(FORMATS[name](report))
    return code(report)
