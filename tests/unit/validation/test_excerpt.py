"""A part of a module says the same as the whole."""

from __future__ import annotations

import builtins
import dis
import sys
import types
from pathlib import Path

import pynvml

from validation import bootstrap
from validation.excerpt import excerpt

MODULE = '''\
# A licence.
"""What it is."""
import os, sys
from json import dumps
from math import *

LIMIT = 3
other = unused = 4


def used(value):
    return helper(value) + LIMIT


@decorated
def helper(value):
    return os.path.join(value)


def decorated(function):
    return function


def never():
    return other


if LIMIT > 2:
    LATE = sys.path
'''


def test_what_is_mentioned_is_kept_with_what_it_mentions_and_the_rest_is_not() -> None:
    kept = excerpt(MODULE, {"used"})
    assert kept.startswith('# A licence.\n"""What it is."""\nimport os, sys\nfrom math import *\n')
    assert "@decorated\ndef helper(value):\n    return os.path.join(value)\ndef decorated" in kept
    assert kept.endswith("if LIMIT > 2:\n    LATE = sys.path\n")
    assert not {"never", "other", "dumps"} & set(kept.replace("(", " ").split())


def test_a_name_bound_twice_is_kept_twice_in_order() -> None:
    assert excerpt("A = 1\nA = A + 1\nB = 2\n", {"A"}) == "A = 1\nA = A + 1\n"


def test_a_module_of_which_nothing_is_used_is_its_licence() -> None:
    assert excerpt("# A licence.\nA = 1\n", ()) == "# A licence.\n"
    assert excerpt("# A licence.\n", ()) == "# A licence.\n"


def part_of_pynvml() -> types.ModuleType:
    module = types.ModuleType("part")
    module.__dict__["__builtins__"] = builtins
    source = bootstrap.sources()["pynvml.py"]
    whole = Path(pynvml.__file__).read_text()
    assert len(source) < len(whole) / 5
    assert source.splitlines()[:3] == whole.splitlines()[:3]
    sys.modules["part"] = module  # it looks for itself there
    try:
        exec(compile(source, "pynvml.py", "exec"), module.__dict__)
    finally:
        del sys.modules["part"]
    return module


def codes(code: types.CodeType) -> list[types.CodeType]:
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return [code, *(one for part in inner for one in codes(part))]


def test_every_name_that_the_probe_and_the_part_of_pynvml_look_up_is_in_it() -> None:
    part = part_of_pynvml()
    sources = bootstrap.sources()
    probe = [compile(text, name, "exec") for name, text in sources.items() if name.startswith("validation/probe/nvml")]
    asked = {
        step.argval
        for module in probe
        for code in codes(module)
        for step in dis.get_instructions(code)
        if step.opname.startswith("LOAD_") and str(step.argval).startswith(("nvml", "NVML_", "NVMLError", "c_nvml"))
    }
    assert {"nvmlInit", "NVML_ERROR_NOT_SUPPORTED", "c_nvmlGpuFabricInfo_v3_t"} <= asked
    missing = [name for name in asked if hasattr(pynvml, name) and not hasattr(part, name)]
    for code in codes(compile(sources["pynvml.py"], "pynvml.py", "exec")):
        looked_up = {step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"}
        missing += [name for name in looked_up if not hasattr(part, name) and not hasattr(builtins, name)]
    assert missing == []


def test_the_part_of_pynvml_knows_every_error_by_number_and_class() -> None:
    part = part_of_pynvml()
    errors = {name: number for name, number in vars(pynvml).items() if name.startswith("NVML_ERROR_")}
    assert len(errors) > 20
    assert {name: getattr(part, name) for name in errors} == errors
    for number in errors.values():
        assert type(part.NVMLError(number)).__name__ == type(pynvml.NVMLError(number)).__name__
