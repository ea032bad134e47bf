"""What an annotation of a wire model asks for, without pydantic's wrappings."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo


@dataclass(frozen=True)
class Asked:
    """The type behind optional and annotated, and the bounds that stood around it."""

    type: Any
    optional: bool
    bounds: tuple[object, ...]

    @property
    def least(self) -> int | None:
        """The smallest number."""
        return next((int(str(one.ge)) for one in self.bounds if isinstance(one, Ge)), None)

    @property
    def most(self) -> int | None:
        """The largest number."""
        return next((int(str(one.le)) for one in self.bounds if isinstance(one, Le)), None)

    @property
    def shortest(self) -> int:
        """The fewest characters."""
        return next((one.min_length for one in self.bounds if isinstance(one, MinLen)), 0)

    @property
    def longest(self) -> int | None:
        """The most characters."""
        return next((one.max_length for one in self.bounds if isinstance(one, MaxLen)), None)

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


def asked_of(field: FieldInfo) -> Asked:
    """What a field of a model asks for."""
    return _unwrap(field.annotation, tuple(_flat(field.metadata)), optional=False)


def field_at(model: type[BaseModel], path: str) -> FieldInfo:
    """The field that a dotted path names; every part but the last names a model.

    Raises:
        KeyError: there is none.
    """
    first, _, rest = path.partition(".")
    field = model.model_fields[first]
    if not rest:
        return field
    inner = asked_of(field).type
    if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
        raise KeyError(path)
    return field_at(inner, rest)


def _unwrap(annotation: Any, bounds: tuple[object, ...], *, optional: bool) -> Asked:
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *extra = get_args(annotation)
        return _unwrap(inner, (*bounds, *_flat(extra)), optional=optional)
    if origin in (Union, UnionType):
        members = [one for one in get_args(annotation) if one is not NoneType]
        nullable = len(members) < len(get_args(annotation))
        if len(members) == 1:
            return _unwrap(members[0], bounds, optional=optional or nullable)
    return Asked(annotation, optional, bounds)


def _flat(metadata: Any) -> Iterator[object]:
    for one in metadata:
        if isinstance(one, FieldInfo):
            yield from _flat(one.metadata)
        else:
            yield one
