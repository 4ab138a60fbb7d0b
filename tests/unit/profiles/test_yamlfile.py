"""YAML read with the lines of its keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles import yamlfile
from profiles.errors import ProfileError


def read(folder: Path, text: str) -> yamlfile.YamlFile:
    path = folder / "one.yaml"
    path.write_text(text)
    return yamlfile.read(path)


def test_a_key_that_overrides_a_merged_one_is_not_written_twice(tmp_path: Path) -> None:
    file = read(tmp_path, "shared: &shared\n  count: 1\n  name: a\nown:\n  <<: *shared\n  count: 2\n")
    assert file.data["own"] == {"count": 2, "name": "a"}
    assert file.lines["own", "count"] == 6
    assert file.where(("own", "name")) == "one.yaml:4: own.name"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "one.yaml:1: the top level must be a mapping of keys, not NoneType"),
        ("- a\n", "one.yaml:1: the top level must be a mapping of keys, not list"),
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "one.yaml:4: key b.c is written twice"),
        ("a: [1\n", "not YAML"),
        ("a: !!python/object:os.system {}\n", "not YAML: could not determine a constructor"),
    ],
)
def test_what_cannot_be_read_names_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ProfileError) as caught:
        read(tmp_path, text)
    assert message in str(caught.value)
