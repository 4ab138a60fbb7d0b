"""Fixtures for every test."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
import uuid
from pathlib import Path

import pytest

# A shell starts background jobs with these ignored, and children inherit it: no test of Ctrl-C could pass, or end.
for _signal, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, _handler)

REPOSITORY = Path(__file__).resolve().parent.parent
STATES = pytest.StashKey[str]()


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
    """The real tool outputs. In CI they must be there; a clone without them leaves out the tests that ask for this."""
    folder = samples_folder()
    if folder is None:
        raise FileNotFoundError("no samples: set KILN_SAMPLES, or run beside shared/samples")
    return folder


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[STATES] = tempfile.mkdtemp(prefix="kiln-states-")


def pytest_sessionfinish(session: pytest.Session) -> None:
    shutil.rmtree(session.config.stash[STATES])


def pytest_runtest_setup(item: pytest.Item) -> None:
    """What a test leaves behind in the user's state (the memory of bad units) is its own, and made only if needed.

    No fixture: for thousands of short tests that alone took a second.
    """
    os.environ["XDG_STATE_HOME"] = f"{item.config.stash[STATES]}/{uuid.uuid4().hex}"


def _without_samples() -> bool:
    """Whether the tests of real outputs are left out: a plain clone has none. CI must have them, and fails without."""
    return samples_folder() is None and not os.environ.get("CI")


def pytest_report_header() -> list[str]:
    """Say that tests are left out, and how to have them."""
    return ["no real tool outputs here: their tests are left out; set KILN_SAMPLES"] if _without_samples() else []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not _without_samples():
        return
    left_out = [item for item in items if "samples" in getattr(item, "fixturenames", ())]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Stop where pytest and pytest-xdist do not go together: tests of one group would share ports and stacks.

    What has been loaded by now stays to the end: the garbage collector need not look through it again and again, and a
    test that forks copies less of it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    if not getattr(session.config.option, "loadgroup", False):
        return
    for item in session.items:
        if item.get_closest_marker("xdist_group") and "@" not in item.nodeid:
            raise pytest.UsageError(f"{item.nodeid}: this pytest keeps no xdist groups; see requirements.lock")
