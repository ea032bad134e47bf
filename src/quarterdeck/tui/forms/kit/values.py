"""What stands in a form, against what stood there when it was opened."""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from quarterdeck.tui.forms.kit.errors import Refusal, model_errors
from quarterdeck.tui.forms.kit.reading import Shown, Unreadable, read
from quarterdeck.tui.forms.kit.spec import Spec


class FormValues:
    """Plain state of a form: knows the model, no widget."""

    def __init__(
        self, model: type[BaseModel], specs: Iterable[Spec], *, changes_only: bool
    ) -> None:
        """`changes_only`: a body holds what was changed alone, as a PATCH wants it."""
        self._model = model
        self._specs = {spec.path: spec for spec in specs}
        self._changes_only = changes_only
        self._original: dict[str, Any] = {}
        self._first: dict[str, Shown] = {}
        self._held: dict[str, Shown] = {}
        self._kept: dict[str, Any] = {}

    def open(self, start: Mapping[str, Any]) -> None:
        """Takes in the values that the form opens with, by path; the rest are the model's own."""
        self._kept = dict(start)
        for path, spec in self._specs.items():
            self._original[path] = _at(start, path, spec.default)

    def original(self, path: str) -> Any:
        """The value that a field opened with."""
        return self._original[path]

    def opened(self, path: str, held: Shown) -> None:
        """What a control holds for the original value, which it may write in its own way."""
        self._first[path] = self._held[path] = held

    def hold(self, path: str, held: Shown) -> None:
        """What a control holds now."""
        self._held[path] = held

    @property
    def changed(self) -> list[str]:
        """Paths of the fields that a person changed."""
        return [path for path, held in self._held.items() if held != self._first[path]]

    def settle(self) -> None:
        """What stands there now is saved."""
        for path in self.changed:
            self._original[path] = read(self._specs[path], self._held[path])
            self._first[path] = self._held[path]

    def value(self, path: str) -> Any:
        """The value of a field as it stands now.

        Raises:
            Unreadable: it is none of its kind.
        """
        if self._held[path] == self._first[path]:
            return self._original[path]
        return read(self._specs[path], self._held[path])

    def body(self) -> BaseModel | Refusal:
        """The request's body, or what is wrong with it."""
        refusal = Refusal()
        values: dict[str, Any] = {}
        for path in self._paths_of_body():
            try:
                self._put(values, path, self.value(path))
            except Unreadable as error:
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
                return  # the model says that it is missing
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
