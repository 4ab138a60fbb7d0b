"""A bundle from a directory: whatever stands in its manifest, it is a bundle or one clear refusal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profiles.errors import ParseError
from validation.evidence import SCHEMA, Bundle

WHOLE = {"schema": SCHEMA, "host": "h", "root": "/", "complete": True, "items": []}


@pytest.mark.parametrize(
    "manifest",
    [
        "",
        "[" * 100_000,
        "null",
        json.dumps({**WHOLE, "items": 5}),
        json.dumps({**WHOLE, "items": None}),
        json.dumps({**WHOLE, "items": [[1], 2]}),
        json.dumps({**WHOLE, "items": [{"name": "../../x", "source": "a", "outcome": "ok"}]}),
        json.dumps({**WHOLE, "notes": 5}),
        json.dumps({key: value for key, value in WHOLE.items() if key != "items"}),
    ],
)
def test_a_wrong_manifest_is_refused(tmp_path: Path, manifest: str) -> None:
    (tmp_path / "manifest.json").write_text(manifest, encoding="utf-8")
    with pytest.raises(ParseError):
        Bundle.read(tmp_path)


def test_a_bundle_that_does_not_say_it_is_complete_is_not(tmp_path: Path) -> None:
    unsaid = {key: value for key, value in WHOLE.items() if key != "complete"}
    (tmp_path / "manifest.json").write_text(json.dumps(unsaid), encoding="utf-8")
    assert not Bundle.read(tmp_path).complete
