"""From what stands in a field to a value of the model, and back."""

from collections.abc import Mapping, Sequence
from typing import Any

from quarterdeck.tui.forms.kit.spec import Kind, Spec

Shown = str | bool | tuple[str, ...] | None
"""What a control holds: a text, whether it is on, the chosen ones, or the one that is chosen."""


class Unreadable(ValueError):
    """What stands in a field is no value of its kind; the text says why and repeats nothing."""


def shown(spec: Spec, value: Any) -> Shown:
    """What a control holds for a value of the model."""
    match spec.kind:
        case Kind.SWITCH:
            return bool(value)
        case Kind.CHOICE:
            return _choice(spec, value)
        case Kind.CHOICES:
            return tuple(str(one) for one in value or ())
        case Kind.LIST:
            return "\n".join(str(one) for one in value or ())
        case Kind.PAIRS:
            pairs: Mapping[str, Any] = value or {}
            return "\n".join(f"{name}={one}" for name, one in pairs.items())
        case _:
            return "" if value is None else str(value)


def read(spec: Spec, held: Shown) -> Any:
    """The value that a control stands for.

    Raises:
        Unreadable: it is none of its kind.
    """
    match spec.kind:
        case Kind.SWITCH:
            return bool(held)
        case Kind.CHOICE:
            return _chosen(spec, held)
        case Kind.CHOICES:
            return list(held) if isinstance(held, tuple) else []
        case Kind.NUMBER:
            return _number(spec, str(held))
        case Kind.LIST:
            return _lines(str(held))
        case Kind.PAIRS:
            return _pairs(_lines(str(held)))
        case Kind.TEXT | Kind.LINES:
            return _text(spec, str(held))


def _choice(spec: Spec, value: Any) -> str | None:
    if value is None:
        return None
    return ("true" if value else "false") if spec.optional_switch else str(value)


def _chosen(spec: Spec, held: Shown) -> Any:
    if held is None:
        return None
    return held == "true" if spec.optional_switch else str(held)


def _text(spec: Spec, held: str) -> str | None:
    if spec.kind is Kind.TEXT and spec.field.trimmed:
        held = held.strip()
    return None if not held and spec.optional else held


def _number(spec: Spec, held: str) -> int | None:
    held = held.strip()
    if not held:
        if spec.optional:
            return None
        raise Unreadable("A number is needed.")
    if not held.removeprefix("-").isascii() or not held.removeprefix("-").isdigit():
        raise Unreadable("It must be a whole number, in digits.")
    return int(held)


def _lines(held: str) -> list[str]:
    return [line for line in held.splitlines() if line.strip()]


def _pairs(lines: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for line in lines:
        name, equals, value = line.partition("=")
        name = name.strip()
        if not equals or not name:
            raise Unreadable("Each line must be NAME=value.")
        if name in pairs:
            raise Unreadable("A name stands there twice.")
        pairs[name] = value
    return pairs
