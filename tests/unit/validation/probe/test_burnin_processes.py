"""Child processes of a burn-in: they hang, crash and babble, and the parent goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest


def run(body: str, repository: Path) -> str:
    """What a fresh interpreter prints: forking belongs in a process without threads."""
    code = "import os, signal, sys, time\nfrom validation.probe.burnprocess import Child, collect, last\n"
    done = subprocess.run(
        [sys.executable, "-c", code + textwrap.dedent(body)],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        env={**os.environ, "PYTHONPATH": str(repository)},
    )
    assert done.stderr == ""
    return done.stdout


def test_messages_arrive_in_order_and_whole(repository: Path) -> None:
    said = run(
        """
        def body(port):
            for number in range(3):
                port.send({"number": number, "text": "x" * 200000})
        child = Child(body)
        collect([child], lambda child: len(child.messages) == 3, 10)
        print([(message["number"], len(message["text"])) for message in child.messages])
        print(last(child, "number")["number"], last(child, "other"))
        """,
        repository,
    )
    assert said == "[(0, 200000), (1, 200000), (2, 200000)]\n2 None\n"


def test_orders_reach_the_child_and_the_end_of_the_parent_does_too(repository: Path) -> None:
    said = run(
        """
        def body(port):
            while True:
                order = port.order()
                if not order:
                    return
                port.send({"heard": order})
        child = Child(body)
        child.tell("copy")
        child.tell("gemm")
        collect([child], lambda child: len(child.messages) == 2, 10)
        print([message["heard"] for message in child.messages])
        os.close(child._inbox)
        collect([child], lambda child: False, 10)
        print(child.ended)
        """,
        repository,
    )
    assert said == "['copy', 'gemm']\nended\n"


def test_a_child_that_does_not_answer_is_left_behind_in_time(repository: Path) -> None:
    said = run(
        """
        def body(port):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(60)
        child = Child(body)
        started = time.monotonic()
        waiting = collect([child], lambda child: bool(child.messages), 0.3)
        child.stop()
        print(waiting == [child], child.ended, time.monotonic() - started < 2)
        """,
        repository,
    )
    assert said == "True stopped True\n"


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "killed by SIGSEGV"),
        ("os.abort()", "killed by SIGABRT"),
        ("raise ValueError('broken')", "ended"),
        ("sys.exit(3)", "ended"),
    ],
)
def test_how_a_child_ended_is_known(repository: Path, end: str, said: str) -> None:
    body = f"""
        def body(port):
            port.send({{"so": "far"}})
            {end}
        child = Child(body)
        collect([child], lambda child: False, 10)
        print(child.ended, child.messages)
        """
    assert run(body, repository) == f"{said} [{{'so': 'far'}}]\n"


def test_what_a_library_prints_does_not_reach_the_evidence(repository: Path) -> None:
    said = run(
        """
        def body(port):
            print("noise", flush=True)
            os.write(1, b"noise")
            os.write(2, b"noise")
            port.send({"done": True})
        child = Child(body)
        collect([child], lambda child: bool(child.messages), 10)
        print(child.messages)
        """,
        repository,
    )
    assert said == "[{'done': True}]\n"
