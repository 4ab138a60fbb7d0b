"""Texts from hosts, made safe to show. A host's words may hold anything: escape codes, bidi controls, half a UTF-16."""

from __future__ import annotations

import unicodedata


def plain(text: str) -> str:
    """The text with every control, format and unprintable character written out (``\\x1b``); newlines are kept.

    What is left can stand in XML 1.0, in a terminal and in UTF-8: no escape sequence, no lone surrogate, no character
    that reorders or hides its neighbours.
    """
    return "".join(_shown(character) for character in text)


def line(text: str) -> str:
    """:func:`plain` on one line: runs of white space become one blank."""
    return plain(" ".join(text.split()))


def _shown(character: str) -> str:
    if character == "\n":
        return character
    if character == "\t":
        return " "
    code = ord(character)
    hidden = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn") or character in "\u2028\u2029"
    if not hidden:
        return character
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
