"""Property values as the engine sends them (protobuf structs) and as Python, with unknowns and secrets told apart.

The signatures are the engine's own constants: sdk/go/common/resource/sig of pulumi v3.274.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from google.protobuf import struct_pb2

SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - a type tag, not a secret
OUTPUT_VALUE: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_UNKNOWNS: Final = frozenset(
    {
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # bool
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
        "04da6b54-80e4-46f7-96ec-b56ff0331ba9",  # string
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # array
        "030794c1-ac77-496b-92df-f27374a8bd58",  # asset
        "e48ece36-62e2-4504-bad9-02848725956a",  # archive
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
    }
)


class Unknown:
    """A value that is not known during a preview. It has no truth value, so that nobody takes it for one."""

    def __bool__(self) -> bool:
        raise TypeError("a value that is not known yet has no truth value")

    def __repr__(self) -> str:
        return "<not known yet>"


UNKNOWN: Final = Unknown()


def to_python(value: struct_pb2.Value) -> Any:
    """Plain Python: secrets and output values unwrapped, unknowns as :data:`UNKNOWN`, whole numbers as ``int``."""
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return UNKNOWN if value.string_value in _UNKNOWNS else value.string_value
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "bool_value":
        return value.bool_value
    if kind == "list_value":
        return [to_python(item) for item in value.list_value.values]
    if kind == "struct_value":
        return _struct_to_python(value.struct_value)
    return None


def _struct_to_python(struct: struct_pb2.Struct) -> Any:
    fields = struct.fields
    signature = fields[SIGNATURE].string_value if SIGNATURE in fields else ""
    if signature in (SECRET, OUTPUT_VALUE):
        return to_python(fields["value"]) if "value" in fields else UNKNOWN
    return {key: to_python(item) for key, item in fields.items()}


def properties(struct: struct_pb2.Struct) -> dict[str, Any]:
    """The properties of a resource as plain Python."""
    return {key: to_python(item) for key, item in struct.fields.items()}


def secret(value: Any) -> dict[str, Any]:
    """``value`` marked secret, for :func:`to_struct`."""
    return {SIGNATURE: SECRET, "value": value}


def to_struct(values: Mapping[str, Any]) -> struct_pb2.Struct:
    """The engine's form of plain Python values."""
    struct = struct_pb2.Struct()
    struct.update(dict(values))
    return struct


def secrets_in(struct: struct_pb2.Struct) -> Iterator[str]:
    """Every text that the engine marked as secret in these properties."""
    for value in struct.fields.values():
        yield from _secrets_in_value(value, inside=False)


def _secrets_in_value(value: struct_pb2.Value, *, inside: bool) -> Iterator[str]:
    kind = value.WhichOneof("kind")
    if kind == "string_value" and inside:
        yield value.string_value
    elif kind == "list_value":
        for item in value.list_value.values:
            yield from _secrets_in_value(item, inside=inside)
    elif kind == "struct_value":
        fields = value.struct_value.fields
        marked = SIGNATURE in fields and (
            fields[SIGNATURE].string_value == SECRET
            or (fields[SIGNATURE].string_value == OUTPUT_VALUE and fields["secret"].bool_value)
        )
        for key, item in fields.items():
            if key != SIGNATURE:
                yield from _secrets_in_value(item, inside=inside or marked)


def scrub(text: str, secrets: frozenset[str]) -> str:
    """``text`` without any secret, nor any line of one. What is shorter than 6 characters is too common to search."""
    pieces = {piece for one in secrets for piece in (one, *one.splitlines()) if len(piece.strip()) >= 6}
    for piece in sorted(pieces, key=len, reverse=True):
        if not piece.startswith("-----"):  # the PEM frame is no secret
            text = text.replace(piece, "[secret]")
    return text


def one_line(error: BaseException) -> str:
    """An exception as one line: its type where the text alone would not say what happened."""
    text = " ".join(str(error).split())
    name = type(error).__name__
    return f"{name}: {text}" if text else name
