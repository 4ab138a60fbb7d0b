"""The program behind ``pulumi-resource-aws`` in the sandbox: ``plugin.py ENGINE_ADDRESS``."""

from __future__ import annotations

import argparse
import asyncio
import sys

from sandbox.cloud import semantics
from sandbox.cloud.provider import EmulatedAws
from sandbox.cloud.serving import serve


def main(arguments: list[str] | None = None) -> int:
    """Serve until the engine is gone."""
    parser = argparse.ArgumentParser(prog="pulumi-resource-aws", description=__doc__)
    parser.add_argument("engine", help="address of the Pulumi engine")
    known, _ = parser.parse_known_args(arguments)
    try:
        asyncio.run(serve(known.engine, semantics.load().version, EmulatedAws()))
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
