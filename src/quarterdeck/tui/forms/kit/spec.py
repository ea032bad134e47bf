"""The fields of a form: what the model says of them, and what a person is told."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.forms.kit.annotations import Asked, asked_of, field_at

FILL = -1
"""As many rows of an editor as there is room for."""

Option = tuple[str, str]
"""Words and value of one choice."""


class Kind(StrEnum):
    """How a value is asked for."""

    TEXT = "text"
    LINES = "lines"
    NUMBER = "number"
    SWITCH = "switch"
    CHOICE = "choice"
    CHOICES = "choices"
    LIST = "list"
    """Several texts, one a line."""
    PAIRS = "pairs"
    """Names with values, `NAME=value`, one a line."""


@dataclass(frozen=True)
class Field:
    """One field as its author wants it; what is left out is taken from the model."""

    path: str
    """The name in the model; dots lead into models within it."""
    label: str = ""
    help: str = ""
    kind: Kind | None = None
    options: Sequence[Option] = ()
    """What can be chosen, where the model does not say it."""
    placeholder: str = ""
    none: str = "none"
    """Words for no choice of an optional field."""
    rule: str = ""
    """In words what the model's pattern asks for."""
    rows: int = 5
    named_by: str = ""
    """The field with a path; in $EDITOR the text has the last part of that for its name."""
    secret: bool = False
    """Masked until a person asks to see it."""
    folded: bool = False
    """Rarely used: behind a line that opens them."""
    trimmed: bool = True
    """Whether blanks around a text are dropped."""


@dataclass(frozen=True)
class Spec:
    """One field of a form, complete."""

    field: Field
    kind: Kind
    asked: Asked
    required: bool
    default: Any
    options: tuple[Option, ...] = ()
    optional_switch: bool = False

    @property
    def path(self) -> str:
        """Its dotted name."""
        return self.field.path

    @property
    def optional(self) -> bool:
        """Whether it may be null."""
        return self.asked.optional

    @property
    def label(self) -> str:
        """What a person calls it."""
        return self.field.label or self.path.rpartition(".")[2].replace("_", " ").capitalize()

    @property
    def bounds(self) -> str:
        """Its bounds in a few words, to stand beside it."""
        asked = self.asked
        match self.kind:
            case Kind.NUMBER if asked.least is not None and asked.most is not None:
                return f"{asked.least} to {asked.most}"
            case Kind.NUMBER if asked.least is not None:
                return f"{asked.least} or more"
            case Kind.TEXT | Kind.LINES if self.required and (asked.shortest or self.field.rule):
                return "needed"
            case Kind.CHOICE if self.required and not self.default:
                return "needed"
            case Kind.LIST:
                return "one a line"
            case Kind.PAIRS:
                return "NAME=value, one a line"
            case _:
                return ""

    @property
    def help(self) -> str:
        """What a person is told while they are in the field."""
        longest = self.asked.longest
        words = [keyed(self.field.help), self.field.rule and f"{self.field.rule}."]
        if longest is not None and self.kind in {Kind.TEXT, Kind.LINES} and longest < 10_000:
            words.append(f"At most {longest} characters.")
        return " ".join(word for word in words if word)

    def offering(self, options: Sequence[Option]) -> "Spec":
        """The same with other choices."""
        return replace(self, options=tuple(options))


def spec_of(model: type[BaseModel], field: Field) -> Spec:
    """What a form needs to know of one field.

    Raises:
        KeyError: the model has none of this name.
    """
    info = field_at(model, field.path)
    asked = asked_of(info)
    kind = field.kind or _kind_of(asked, field)
    options = tuple(field.options) or tuple((_words(one), one) for one in asked.choices)
    tristate = kind is Kind.SWITCH and asked.optional
    return Spec(
        field,
        Kind.CHOICE if tristate else kind,
        asked,
        required=info.is_required(),
        default=_default(info),
        options=(("yes", "true"), ("no", "false")) if tristate else options,
        optional_switch=tristate,
    )


def _kind_of(asked: Asked, field: Field) -> Kind:
    origin = get_origin(asked.type) or asked.type
    if asked.choices or field.options:
        return Kind.CHOICES if origin is list else Kind.CHOICE
    if origin is bool:
        return Kind.SWITCH
    if origin is int:
        return Kind.NUMBER
    if origin is list:
        return Kind.LIST
    if origin is dict:
        return Kind.PAIRS
    return Kind.TEXT


def _default(info: FieldInfo) -> Any:
    return None if info.is_required() else info.get_default(call_default_factory=True)


def _words(value: str) -> str:
    return value.replace("_", " ")
