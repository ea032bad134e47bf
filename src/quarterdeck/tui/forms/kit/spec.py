"""Fields of a form, read from a model; their values and errors."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from quarterdeck.client.errors import ClientError, LinkError, NotConnectedError, ResponseError
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.actions import keyed
from quarterdeck.wire.base import NUL_ERROR


@dataclass(frozen=True)
class FieldType:
    """The type inside optional and annotated, and its bounds."""

    type: Any
    optional: bool
    bounds: tuple[object, ...]

    @property
    def least(self) -> int | None:
        """The smallest number."""
        return next((int(str(bound.ge)) for bound in self.bounds if isinstance(bound, Ge)), None)

    @property
    def most(self) -> int | None:
        """The largest number."""
        return next((int(str(bound.le)) for bound in self.bounds if isinstance(bound, Le)), None)

    @property
    def shortest(self) -> int:
        """The fewest characters."""
        return next((bound.min_length for bound in self.bounds if isinstance(bound, MinLen)), 0)

    @property
    def longest(self) -> int | None:
        """The most characters."""
        return next((bound.max_length for bound in self.bounds if isinstance(bound, MaxLen)), None)

    @property
    def choices(self) -> tuple[str, ...]:
        """The values of an enumeration or a literal, also of a list of such."""
        of: Any = self.type
        if get_origin(of) is list:
            of = _unwrap(get_args(of)[0], (), optional=False).type
        if get_origin(of) is Literal:
            return tuple(str(value) for value in get_args(of))
        if isinstance(of, type) and issubclass(of, StrEnum):
            return tuple(of)
        return ()


def field_type_of(field: FieldInfo) -> FieldType:
    """Return the spec of a field of a model."""
    return _unwrap(field.annotation, tuple(_flat(field.metadata)), optional=False)


def field_at(model: type[BaseModel], path: str) -> FieldInfo:
    """Return the field at a dotted path; every part but the last names a model.

    Raises:
        KeyError: no such field.
    """
    first, _, rest = path.partition(".")
    field = model.model_fields[first]
    if not rest:
        return field
    inner = field_type_of(field).type
    if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
        raise KeyError(path)
    return field_at(inner, rest)


def _unwrap(annotation: Any, bounds: tuple[object, ...], *, optional: bool) -> FieldType:
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *extra = get_args(annotation)
        return _unwrap(inner, (*bounds, *_flat(extra)), optional=optional)
    if origin in (Union, UnionType):
        members = [arg for arg in get_args(annotation) if arg is not NoneType]
        nullable = len(members) < len(get_args(annotation))
        if len(members) == 1:
            return _unwrap(members[0], bounds, optional=optional or nullable)
    return FieldType(annotation, optional, bounds)


def _flat(metadata: Any) -> Iterator[object]:
    for item in metadata:
        if isinstance(item, FieldInfo):
            yield from _flat(item.metadata)
        else:
            yield item


FILL = -1
"""As many rows of an editor as there is room for."""

Option = tuple[str, str]
"""Label and value of one choice."""


class FieldKind(StrEnum):
    """How a value is entered."""

    TEXT = "text"
    LINES = "lines"
    NUMBER = "number"
    SWITCH = "switch"
    CHOICE = "choice"
    CHOICES = "choices"
    LIST = "list"
    """Several texts, one per line."""
    PAIRS = "pairs"
    """Names with values, `NAME=value`, one per line."""


@dataclass(frozen=True)
class Field:
    """One field as its author declares it; omitted attributes are read from the model."""

    path: str
    """The name in the model; dots lead into nested models."""
    label: str = ""
    help: str = ""
    kind: FieldKind | None = None
    options: Sequence[Option] = ()
    """The choices, where the model does not define them."""
    placeholder: str = ""
    none: str = "none"
    """Label for no choice of an optional field."""
    rule: str = ""
    """A description of the model's pattern."""
    rows: int = 5
    named_by: str = ""
    """The field with a path, whose last part is the file name of the text in $EDITOR."""
    secret: bool = False
    """Masked until revealed."""
    folded: bool = False
    """Rarely used: hidden in a section that has to be opened."""
    trimmed: bool = True
    """Whether leading and trailing whitespace is removed."""


@dataclass(frozen=True)
class Spec:
    """One field of a form, complete."""

    field: Field
    kind: FieldKind
    field_type: FieldType
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
        return self.field_type.optional

    @property
    def label(self) -> str:
        """Its label."""
        return self.field.label or self.path.rpartition(".")[2].replace("_", " ").capitalize()

    @property
    def bounds(self) -> str:
        """Its bounds in a few words, shown next to it."""
        field_type = self.field_type
        match self.kind:
            case FieldKind.NUMBER if field_type.least is not None and field_type.most is not None:
                return f"{field_type.least} to {field_type.most}"
            case FieldKind.NUMBER if field_type.least is not None:
                return f"{field_type.least} or more"
            case FieldKind.TEXT | FieldKind.LINES if self.required and (
                field_type.shortest or self.field.rule
            ):
                return "required"
            case FieldKind.CHOICE if self.required and not self.default:
                return "required"
            case FieldKind.LIST:
                return "one a line"
            case FieldKind.PAIRS:
                return "NAME=value, one a line"
            case _:
                return ""

    @property
    def help(self) -> str:
        """The help shown while the field has the focus."""
        longest = self.field_type.longest
        words = [keyed(self.field.help), self.field.rule and f"{self.field.rule}."]
        if (
            longest is not None
            and self.kind in {FieldKind.TEXT, FieldKind.LINES}
            and longest < 10_000
        ):
            words.append(f"At most {longest} characters.")
        return " ".join(word for word in words if word)

    def offering(self, options: Sequence[Option]) -> "Spec":
        """Return a copy with other choices."""
        return replace(self, options=tuple(options))


def spec_of(model: type[BaseModel], field: Field) -> Spec:
    """Return the full description of a field.

    Raises:
        KeyError: the model has no field of this name.
    """
    info = field_at(model, field.path)
    field_type = field_type_of(info)
    kind = field.kind or _kind_of(field_type, field)
    options = tuple(field.options) or tuple(
        (_words(choice), choice) for choice in field_type.choices
    )
    tristate = kind is FieldKind.SWITCH and field_type.optional
    return Spec(
        field,
        FieldKind.CHOICE if tristate else kind,
        field_type,
        required=info.is_required(),
        default=_default(info),
        options=(("yes", "true"), ("no", "false")) if tristate else options,
        optional_switch=tristate,
    )


def _kind_of(field_type: FieldType, field: Field) -> FieldKind:
    origin = get_origin(field_type.type) or field_type.type
    if field_type.choices or field.options:
        return FieldKind.CHOICES if origin is list else FieldKind.CHOICE
    if origin is bool:
        return FieldKind.SWITCH
    if origin is int:
        return FieldKind.NUMBER
    if origin is list:
        return FieldKind.LIST
    if origin is dict:
        return FieldKind.PAIRS
    return FieldKind.TEXT


def _default(info: FieldInfo) -> Any:
    return None if info.is_required() else info.get_default(call_default_factory=True)


def _words(value: str) -> str:
    return value.replace("_", " ")


Shown = str | bool | tuple[str, ...] | None
"""The value of a control: a text, whether it is on, the chosen ones, or the chosen one."""


class UnsupportedFieldError(ValueError):
    """The text in a field is not a value of its kind; the message says why and repeats nothing."""


def shown(spec: Spec, value: Any) -> Shown:
    """Return what a control shows for a value of the model."""
    match spec.kind:
        case FieldKind.SWITCH:
            return bool(value)
        case FieldKind.CHOICE:
            return _choice(spec, value)
        case FieldKind.CHOICES:
            return tuple(str(item) for item in value or ())
        case FieldKind.LIST:
            return "\n".join(str(item) for item in value or ())
        case FieldKind.PAIRS:
            pairs: Mapping[str, Any] = value or {}
            return "\n".join(f"{name}={item}" for name, item in pairs.items())
        case _:
            return "" if value is None else str(value)


def read(spec: Spec, entry: Shown) -> Any:
    """Return the value that a control represents.

    Raises:
        UnsupportedFieldError: not a value of its kind.
    """
    match spec.kind:
        case FieldKind.SWITCH:
            return bool(entry)
        case FieldKind.CHOICE:
            return _chosen(spec, entry)
        case FieldKind.CHOICES:
            return list(entry) if isinstance(entry, tuple) else []
        case FieldKind.NUMBER:
            return _number(spec, str(entry))
        case FieldKind.LIST:
            return _lines(str(entry))
        case FieldKind.PAIRS:
            return _pairs(_lines(str(entry)))
        case FieldKind.TEXT | FieldKind.LINES:
            return _text(spec, str(entry))


def _choice(spec: Spec, value: Any) -> str | None:
    if value is None:
        return None
    return ("true" if value else "false") if spec.optional_switch else str(value)


def _chosen(spec: Spec, entry: Shown) -> Any:
    if entry is None:
        return None
    return entry == "true" if spec.optional_switch else str(entry)


def _text(spec: Spec, entry: str) -> str | None:
    if spec.kind is FieldKind.TEXT and spec.field.trimmed:
        entry = entry.strip()
    return None if not entry and spec.optional else entry


def _number(spec: Spec, entry: str) -> int | None:
    entry = entry.strip()
    if not entry:
        if spec.optional:
            return None
        raise UnsupportedFieldError("Enter a number.")
    if not entry.removeprefix("-").isascii() or not entry.removeprefix("-").isdigit():
        raise UnsupportedFieldError("Must be a whole number.")
    return int(entry)


def _lines(entry: str) -> list[str]:
    return [line for line in entry.splitlines() if line.strip()]


def _pairs(lines: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for line in lines:
        name, equals, value = line.partition("=")
        name = name.strip()
        if not equals or not name:
            raise UnsupportedFieldError("Each line must be NAME=value.")
        if name in pairs:
            raise UnsupportedFieldError("A name is listed twice.")
        pairs[name] = value
    return pairs


_GENERAL = "The request is not valid."
"""The service's message when its details contain the errors."""
_NAMED = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*)(?:: (.*))?", re.DOTALL)
_NOT_A_PART = "; "


@dataclass
class Refusal:
    """Errors of fields, by path, and errors that concern none of them."""

    beside: dict[str, str] = field(default_factory=dict[str, str])
    general: str = ""


class InvalidValueError(Exception):
    """Raised by the saver of a form for errors found before the request."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__("The form is not valid.")
        self.refusal = refusal


def model_errors(error: ValidationError, specs: Iterable[Spec]) -> Refusal:
    """Return what a model refuses. Values are never repeated: they may be secret."""
    known = {spec.path: spec for spec in specs}
    refusal = Refusal()
    for one in error.errors(include_url=False, include_input=False):
        where = [str(part) for part in one["loc"]]
        if one["type"] == NUL_ERROR:
            where = [*where, str(one.get("ctx", {}).get("field", ""))]
        path = _owner(".".join(where), known)
        words = _plain(one, known.get(path or ""))
        _add(refusal, path, words if path else f"{'.'.join(where)}: {words}".removeprefix(": "))
    return refusal


def refusal_of(error: ClientError, paths: Iterable[str]) -> Refusal:
    """Assign the service's errors to the fields that its details name."""
    known = dict.fromkeys(paths)
    refusal = Refusal()
    text = one_line(str(error))
    if isinstance(error, ResponseError):
        for path, words in _parts(error.details or ""):
            owner = _owner(path, known)
            if owner is not None:
                _add(refusal, owner, _said(text, words))
    if not refusal.beside:
        refusal.general = f"{text} {_what_now(error)}"
    return refusal


def _what_now(error: ClientError) -> str:
    details = one_line(error.details or "") if isinstance(error, ResponseError) else ""
    match error:
        case NotConnectedError():
            return "Your input is kept; save again when connected."
        case LinkError():
            return "The change may have been saved anyway; check before retrying."
        case _ if details:
            return f"({details}) {one_line(error.next_step)}"
        case _:
            return one_line(error.next_step)


def _parts(details: str) -> list[tuple[str, str]]:
    found = (_NAMED.fullmatch(part) for part in details.split(_NOT_A_PART))
    return [(one[1], one_line(one[2] or "")) for one in found if one]


def _said(text: str, words: str) -> str:
    if text == _GENERAL and words:
        return _sentence(words.removeprefix("Value error, "))
    if " " in words and words not in text:
        return f"{text} {_sentence(words)}"
    return text


def _owner(path: str, known: Mapping[str, object]) -> str | None:
    """Return the field that contains a path."""
    while path and path not in known:
        path = path.rpartition(".")[0]
    return path or None


def _add(refusal: Refusal, path: str | None, words: str) -> None:
    if path is None:
        refusal.general = f"{refusal.general} {words}".strip()
    else:
        refusal.beside.setdefault(path, words)


def _plain(error: Any, spec: Spec | None) -> str:
    """Return a readable message for an error of pydantic."""
    context: Mapping[str, Any] = error.get("ctx", {})
    match error["type"]:
        case "missing":
            return "Required."
        case "string_too_short" if context["min_length"] == 1:
            return "Required."
        case "string_too_short":
            return f"At least {context['min_length']} characters."
        case "string_too_long":
            return f"At most {context['max_length']} characters."
        case "too_short":
            return f"At least {context['min_length']} of them."
        case "too_long":
            return f"At most {context['max_length']} of them."
        case "greater_than_equal":
            return f"At least {context['ge']}."
        case "less_than_equal":
            return f"At most {context['le']}."
        case "string_pattern_mismatch" if spec is not None and spec.field.rule:
            return f"{spec.field.rule}."
        case "string_type" | "uuid_type" | "literal_error" | "enum":
            return "Choose one." if spec is not None and spec.options else "Required."
        case _:
            return _sentence(one_line(str(error["msg"])).removeprefix("Value error, "))


def _sentence(words: str) -> str:
    words = words.strip()
    if not words:
        return words
    return words[0].upper() + words[1:] + ("" if words[-1] in ".!?" else ".")


class FormValues:
    """State of a form without widgets."""

    def __init__(
        self, model: type[BaseModel], specs: Iterable[Spec], *, changes_only: bool
    ) -> None:
        """`changes_only`: a body contains only what was changed, for a PATCH."""
        self._model = model
        self._specs = {spec.path: spec for spec in specs}
        self._changes_only = changes_only
        self._original: dict[str, Any] = {}
        self._first: dict[str, Shown] = {}
        self._entries: dict[str, Shown] = {}
        self._kept: dict[str, Any] = {}

    def open(self, start: Mapping[str, Any]) -> None:
        """Set the initial values, by path; the rest are the model's own."""
        self._kept = dict(start)
        for path, spec in self._specs.items():
            self._original[path] = _at(start, path, spec.default)

    def original(self, path: str) -> Any:
        """Return the initial value of a field."""
        return self._original[path]

    def opened(self, path: str, entry: Shown) -> None:
        """Note how a control represents the initial value, which it may normalize."""
        self._first[path] = self._entries[path] = entry

    def reopen(self, path: str, value: Any, entry: Shown) -> None:
        """Set the initial value of a field that was opened with another one."""
        self._original[path] = value
        self.opened(path, entry)

    def hold(self, path: str, entry: Shown) -> None:
        """Note the current value of a control."""
        self._entries[path] = entry

    @property
    def changed(self) -> list[str]:
        """Paths of the fields that the user changed."""
        return [path for path, entry in self._entries.items() if entry != self._first[path]]

    def settle(self) -> None:
        """Note that the current values are saved."""
        for path in self.changed:
            self._original[path] = read(self._specs[path], self._entries[path])
            self._first[path] = self._entries[path]

    def value(self, path: str) -> Any:
        """Return the current value of a field.

        Raises:
            UnsupportedFieldError: not a value of its kind.
        """
        if self._entries[path] == self._first[path]:
            return self._original[path]
        return read(self._specs[path], self._entries[path])

    def body(self) -> BaseModel | Refusal:
        """Return the request's body, or its errors."""
        refusal = Refusal()
        values: dict[str, Any] = {}
        for path in self._paths_of_body():
            try:
                self._put(values, path, self.value(path))
            except UnsupportedFieldError as error:
                refusal.beside[path] = str(error)
        if refusal.beside:
            return refusal
        try:
            return self._model.model_validate(values)
        except ValidationError as error:
            return model_errors(error, self._specs.values())

    def _paths_of_body(self) -> list[str]:
        changed = self.changed
        if self._changes_only:
            touched = {path.partition(".")[0] for path in changed}
            return [
                path
                for path in self._specs
                if path in changed or ("." in path and path.partition(".")[0] in touched)
            ]
        return [
            path
            for path, spec in self._specs.items()
            if spec.required or path in changed or self._original[path] != spec.default
        ]

    def _put(self, values: dict[str, Any], path: str, value: Any) -> None:
        first, _, rest = path.partition(".")
        if not rest:
            if value is None and not self._specs[path].optional:
                return  # the model reports it as missing
            values[first] = value
            return
        inner = values.setdefault(first, dict(_as_mapping(self._kept.get(first))))
        inner[rest] = value


def _at(values: Mapping[str, Any], path: str, otherwise: Any) -> Any:
    if path in values:
        return values[path]
    first, _, rest = path.partition(".")
    if rest and first in values:
        return _at(_as_mapping(values[first]), rest, otherwise)
    return otherwise


def _as_mapping(value: Any) -> Mapping[str, Any]:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return value or {}
