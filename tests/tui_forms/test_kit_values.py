"""What a form takes from a model, and what it makes of what stands in it."""

from typing import Any, Literal

import pytest
from pydantic import BaseModel, ValidationError

from quarterdeck.client.errors import (
    ConflictError,
    InvalidRequestError,
    NotConnectedError,
    RequestTimeoutError,
)
from quarterdeck.tui.forms.kit.spec import (
    Field,
    FieldKind,
    FormValues,
    Refusal,
    Shown,
    UnsupportedFieldError,
    model_errors,
    read,
    refusal_of,
    shown,
    spec_of,
)
from quarterdeck.wire.automations import ChangeAutomation, CreateAutomation
from quarterdeck.wire.environment_parts import (
    ChangeVariable,
    CreateMcp,
    CreateVariable,
    StdioConfig,
)
from quarterdeck.wire.replicas import CreateReplica


class Chosen(BaseModel):
    """A model with several choices."""

    days: list[Literal["mon", "tue"]] = []


@pytest.mark.parametrize(
    ("model", "path", "kind", "bounds"),
    [
        (CreateVariable, "key", FieldKind.TEXT, ""),
        (CreateVariable, "personal_override_allowed", FieldKind.SWITCH, ""),
        (CreateAutomation, "name", FieldKind.TEXT, "required"),
        (CreateAutomation, "debounce_seconds", FieldKind.NUMBER, "0 to 86400"),
        (CreateAutomation, "thinking_level", FieldKind.CHOICE, ""),
        (CreateAutomation, "goal_mode", FieldKind.CHOICE, ""),
        (CreateAutomation, "config.report", FieldKind.SWITCH, ""),
        (CreateReplica, "config.auto_stop_minutes", FieldKind.NUMBER, "3 to 1440"),
        (CreateMcp, "transport", FieldKind.CHOICE, "required"),
        (StdioConfig, "args", FieldKind.LIST, "one a line"),
        (StdioConfig, "env", FieldKind.PAIRS, "NAME=value, one a line"),
        (Chosen, "days", FieldKind.CHOICES, ""),
    ],
)
def test_the_model_says_what_is_asked(
    model: type[BaseModel], path: str, kind: FieldKind, bounds: str
) -> None:
    spec = spec_of(model, Field(path))
    assert (spec.kind, spec.bounds) == (kind, bounds)


def test_a_field_that_the_model_does_not_have_is_an_error() -> None:
    with pytest.raises(KeyError):
        spec_of(CreateVariable, Field("kye"))


@pytest.mark.parametrize(
    ("model", "path", "value", "held"),
    [
        (CreateAutomation, "debounce_seconds", 30, "30"),
        (CreateAutomation, "debounce_seconds", None, ""),
        (CreateAutomation, "goal_mode", None, None),
        (CreateAutomation, "goal_mode", False, "false"),
        (CreateAutomation, "workspace_size", "large", "large"),
        (StdioConfig, "args", ["-a", "two words"], "-a\ntwo words"),
        (StdioConfig, "env", {"A": "1=2"}, "A=1=2"),
        (Chosen, "days", ["tue"], ("tue",)),
    ],
)
def test_values_come_back_as_they_went(
    model: type[BaseModel], path: str, value: Any, held: Shown
) -> None:
    spec = spec_of(model, Field(path))
    assert shown(spec, value) == held
    assert read(spec, held) == value


@pytest.mark.parametrize("held", ["x", "1.0", "\uff11\uff12", "1_0", "--1"])
def test_a_number_is_digits(held: str) -> None:
    with pytest.raises(UnsupportedFieldError):
        read(spec_of(CreateAutomation, Field("debounce_seconds")), held)


@pytest.mark.parametrize("held", ["A", "=1", "A=1\nA=2"])
def test_pairs_are_names_with_values(held: str) -> None:
    with pytest.raises(UnsupportedFieldError):
        read(spec_of(StdioConfig, Field("env")), held)


def values_of(
    model: type[BaseModel], *fields: Field, changes_only: bool = False, **start: Any
) -> FormValues:
    specs = [spec_of(model, field) for field in fields]
    values = FormValues(model, specs, changes_only=changes_only)
    values.open(start)
    for spec in specs:
        values.opened(spec.path, shown(spec, values.original(spec.path)))
    return values


def test_a_change_sends_what_was_changed_alone() -> None:
    values = values_of(
        ChangeVariable, Field("key"), Field("value"), changes_only=True, key="A", value="1"
    )
    values.hold("value", "2")
    body = values.body()
    assert isinstance(body, ChangeVariable)
    assert body.model_dump(exclude_unset=True) == {"value": "2"}
    values.hold("value", "1")
    assert values.changed == []


def test_what_was_saved_is_no_change_any_more() -> None:
    values = values_of(ChangeVariable, Field("value"), changes_only=True, value="1")
    values.hold("value", "2")
    values.settle()
    assert values.changed == [] and values.value("value") == "2"


def test_a_model_within_the_model_keeps_what_no_field_shows() -> None:
    values = values_of(
        ChangeAutomation, Field("config.report"), changes_only=True, config={"extra": 1}
    )
    values.hold("config.report", True)
    body = values.body()
    assert isinstance(body, ChangeAutomation)
    assert body.model_dump(exclude_unset=True) == {"config": {"extra": 1, "report": True}}


def test_an_empty_optional_field_is_cleared() -> None:
    values = values_of(ChangeAutomation, Field("description"), changes_only=True, description="old")
    values.hold("description", "  ")
    body = values.body()
    assert isinstance(body, ChangeAutomation)
    assert body.model_dump(exclude_unset=True) == {"description": None}


def test_everything_wrong_is_said_at_once_and_no_value_is_repeated() -> None:
    rule = "Letters, digits and _"
    values = values_of(CreateVariable, Field("key", rule=rule), Field("value", secret=True))
    values.hold("key", "1 secret-key")
    values.hold("value", "x" * 70_000)
    refusal = values.body()
    assert isinstance(refusal, Refusal)
    assert refusal.beside == {"key": f"{rule}.", "value": "At most 65536 bytes."}
    assert "secret-key" not in str(refusal)


def test_what_cannot_be_read_is_said_before_the_model_is_asked() -> None:
    values = values_of(CreateAutomation, Field("name"), Field("debounce_seconds"), name="a")
    values.hold("debounce_seconds", "soon")
    refusal = values.body()
    assert isinstance(refusal, Refusal)
    assert list(refusal.beside) == ["debounce_seconds"]


def test_errors_within_lists_belong_to_the_field() -> None:
    with pytest.raises(ValidationError) as caught:
        CreateAutomation.model_validate({"name": "a", "triggers": [{"type": "cron", "config": {}}]})
    refusal = model_errors(caught.value, [spec_of(CreateAutomation, Field("triggers"))])
    assert refusal.beside == {"triggers": "Required."}
    assert refusal.general  # prompt and environment have no field here


def refused(
    kind: type[InvalidRequestError | ConflictError], text: str, details: str | None
) -> Refusal:
    error = kind(text, status=400, details=details)
    return refusal_of(error, ["name", "key", "config", "config.report"])


def test_a_refusal_stands_beside_the_field_it_names() -> None:
    general = "The request is not valid."
    found = refused(
        InvalidRequestError, general, "name: it is empty; config.report: no; config.x: y"
    )
    assert found == Refusal({"name": "It is empty.", "config.report": "No.", "config": "Y."}, "")
    taken = refused(ConflictError, "The key is taken.", "key: SHOP")
    assert taken.beside == {"key": "The key is taken."}
    plain = refused(InvalidRequestError, "It is locked.", "name")
    assert plain.beside == {"name": "It is locked."}
    more = refused(InvalidRequestError, "It does not fit.", "config: url: it must be one")
    assert more.beside == {"config": "It does not fit. Url: it must be one."}


def test_a_refusal_of_no_field_is_said_with_what_to_do() -> None:
    found = refused(ConflictError, "It is used.", "replicas: a, b")
    assert not found.beside
    assert found.general.startswith("It is used. (replicas: a, b)")
    assert "Your input is kept" in refusal_of(NotConnectedError("Gone."), []).general
    assert "check before" in refusal_of(RequestTimeoutError("Late."), []).general
