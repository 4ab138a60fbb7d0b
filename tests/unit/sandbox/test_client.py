"""The sandbox as its users see it, as far as that needs no running one."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import ConfigError
from sandbox.client import Sandbox


def test_a_home_that_cannot_be_made_is_told_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written: Not a directory") as caught:
        Sandbox(tmp_path / "file" / "home").start()
    assert "--home or KILN_SANDBOX_HOME" in str(caught.value)
