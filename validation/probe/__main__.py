"""``python -m validation.probe collect NONCE``: the probe, started by hand."""

import sys

from validation.probe.main import main

main(b"", sys.argv[1:])
