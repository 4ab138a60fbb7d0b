"""Fixtures for every test."""

from __future__ import annotations

import os
import signal
import uuid
from pathlib import Path

import pytest

# A shell starts background jobs with these ignored, and children inherit it: no test of Ctrl-C could pass, or end.
for _signal, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, _handler)

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return REPOSITORY


def samples_folder() -> Path | None:
    """The folder of real tool outputs: ``KILN_SAMPLES``, else ``../shared/samples``; None where neither is there."""
    folder = Path(os.environ.get("KILN_SAMPLES", REPOSITORY.parent / "shared" / "samples"))
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def samples() -> Path:
    """The real tool outputs. In CI they must be there."""
    folder = samples_folder()
    if folder is None:
        raise FileNotFoundError("no samples: set KILN_SAMPLES, or run beside shared/samples")
    return folder


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """What a test leaves behind in the user's state (the memory of bad units) is its own, and made only if needed."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / f"state-{uuid.uuid4().hex}"))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Stop where pytest and pytest-xdist do not go together: tests of one group would share ports and stacks."""
    if not getattr(session.config.option, "loadgroup", False):
        return
    for item in session.items:
        if item.get_closest_marker("xdist_group") and "@" not in item.nodeid:
            raise pytest.UsageError(f"{item.nodeid}: this pytest keeps no xdist groups; see requirements.lock")
