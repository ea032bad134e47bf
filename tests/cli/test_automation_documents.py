"""Automations as TOML, triggers from options, and moments as they are told."""

import time
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.cli.automation.automations import both_clocks, duration, next_fires
from quarterdeck.cli.automation.definition import _validated, changed_settings
from quarterdeck.cli.automation.settings import (
    KEYS,
    SettingOptions,
    merge_triggers,
    read_document,
    write_document,
)
from quarterdeck.cli.errors import UsageError
from quarterdeck.wire.automations import Automation, CreateAutomation

_SEVERAL = ("events", "repositories")
NOTHING = SettingOptions(
    **{one.name: () if one.name in _SEVERAL else None for one in fields(SettingOptions)}
    | {"webhook": False}
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    TEXT | st.booleans() | st.integers(-(2**63), 2**63 - 1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
WHOLE = {
    "name": 'a "b"',
    "environment": "web",
    "prompt": 'One\r\n\\two """three"""\n\x7f end"',
    "enabled": True,
    "debounce_seconds": 0,
    "config": {"skip_while_running": False, "a key": [1, {"b": 1.5}]},
    "triggers": [
        {"type": "cron", "config": {"schedule": "0 9 * * *", "timezone": "UTC"}},
        {"type": "custom", "config": {}},
    ],
}


def with_(**options: Any) -> SettingOptions:
    return SettingOptions(**{**vars(NOTHING), **options})


def test_what_is_written_is_read_again() -> None:
    written = write_document({**WHOLE, "model": None, "unknown": 1})
    assert read_document(written, "it") == WHOLE
    assert '# model = ""' in written


@settings(max_examples=200, deadline=None)
@given(st.fixed_dictionaries({"prompt": TEXT, "config": st.dictionaries(TEXT, VALUES)}))
def test_any_setting_is_read_as_it_was(found: dict[str, Any]) -> None:
    assert tomllib.loads(write_document(found)) == found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name = ", "F is not valid TOML"),
        ('prompts = "x"', r"F: prompts: .* prompt\?"),
        ("config = 1", "F: config: a table.$"),
        ("triggers = 1", "F: triggers: tables.$"),
        ("triggers = [1]", "F: triggers: tables.$"),
        ('triggers = [{type = "cron", config = 1}]', "F: triggers: config: a table.$"),
        ("triggers = [{config = {repositories = 1}}]", "F: triggers: repositories: a list"),
        ("environment = 1", "F: environment: a name or an id.$"),
        ("zzz = 1", "F: zzz: unknown setting.$"),
    ],
)
def test_what_is_no_document_is_named(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        read_document(text, "F")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"name": 1}, "^F: name: "),
        ({"name": "n", "prompt": "p"}, "^F: environment: "),
        ({"debounce_seconds": -1}, "^F: debounce_seconds: "),
        ({"triggers": [{"type": "cron", "config": {}}]}, r"^F: triggers.0.config.schedule: "),
        ({"triggers": [{"type": "sun"}]}, r"^F: triggers.0: "),
    ],
)
def test_what_cannot_be_asked_for_is_named(settings: dict[str, Any], told: str) -> None:
    whole = {"name": "n", "prompt": "p", "environment_id": str(uuid4())}
    asked = settings if "prompt" in settings else {**whole, **settings}
    with pytest.raises(UsageError, match=told):
        _validated(CreateAutomation, asked, "F")


def test_only_what_was_changed_is_sent() -> None:
    before = {"name": "a", "model": "m", "triggers": [1], "config": {"a": 1}, "enabled": True}
    assert changed_settings(before, before) == {}
    after = {"name": "b", "enabled": True, "description": "d"}
    assert changed_settings(before, after) == {
        "name": "b",
        "description": "d",
        "model": None,
        "triggers": [],
        "config": {},
    }
    with pytest.raises(UsageError, match="enabled"):
        changed_settings(before, {"name": "a"})
    with pytest.raises(UsageError, match="scope"):
        changed_settings(before, {**before, "scope": "org"})


def test_triggers_are_laid_over_those_that_are_there() -> None:
    cron = {"type": "cron", "config": {"schedule": "0 9 * * *", "timezone": "UTC"}}
    hook = {"type": "custom", "config": {"kept": 1}}
    opened = {
        "type": "host-a",
        "config": {"event": "pull_request.opened", "excluded_actors": ["bot"]},
    }
    assert merge_triggers([cron, hook], NOTHING) is None
    assert merge_triggers([], with_(cron="* * * * *")) == [
        {"type": "cron", "config": {"schedule": "* * * * *"}}
    ]
    assert merge_triggers([hook, cron], with_(timezone="Europe/Berlin", webhook=True)) == [
        hook,
        {"type": "cron", "config": {"schedule": "0 9 * * *", "timezone": "Europe/Berlin"}},
    ]
    on = with_(events=("pull_request.opened", "merge_request.merged"), repositories=("shop",))
    assert merge_triggers([opened], on) == [
        {"type": "host-a", "config": {**opened["config"], "repositories": ["shop"]}},
        {
            "type": "host-b",
            "config": {"event": "merge_request.merged", "repositories": ["shop"]},
        },
    ]
    assert merge_triggers([cron, hook, opened], NOTHING, ["webhook", "pull_request.opened"]) == [
        cron
    ]


@pytest.mark.parametrize(
    ("options", "without", "told"),
    [
        ({"timezone": "UTC"}, (), "--cron"),
        ({"repositories": ("shop",)}, (), "--on"),
        ({}, ("cron",), "no trigger 'cron'"),
    ],
)
def test_options_that_say_nothing(options: dict[str, Any], without: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        merge_triggers([], with_(**options), without)


def test_a_document_has_every_setting_that_can_be_changed() -> None:
    asked = set(CreateAutomation.model_fields) - {"environment_id", "scope"} | {"environment"}
    assert asked == set(KEYS)


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def automation(**fields: Any) -> Automation:
    now = datetime(2026, 11, 20, 8, 0, tzinfo=UTC)
    plain = {"id": UUID(int=1), "organization_id": UUID(int=2), "name": "n", "prompt": "p"}
    more = {"environment_id": UUID(int=3), "enabled": True, "created_at": now, "updated_at": now}
    return Automation.model_validate({**plain, **more, **fields})


def test_coming_moments_are_told_by_both_clocks(new_york: None) -> None:
    friday = datetime(2026, 11, 20, 8, 30, tzinfo=UTC)
    one = automation(cron_expression="0 9 * * 1-5", cron_timezone="Europe/Berlin")
    moments = next_fires(one, friday)
    assert len(moments) == 5 and moments[0] == datetime(2026, 11, 23, 8, 0, tzinfo=UTC)
    assert (
        both_clocks(moments[0], one.cron_timezone)
        == "Mon 2026-11-23 09:00 Europe/Berlin, here Mon 2026-11-23 03:00 EST"
    )
    assert both_clocks(moments[0], "EST") == "Mon 2026-11-23 03:00 EST"


def test_a_schedule_that_is_not_understood_here_has_what_the_service_tells() -> None:
    moment = datetime(2026, 11, 23, 8, 0, tzinfo=UTC)
    assert next_fires(automation(), moment) == []
    odd = automation(cron_expression="@sunrise", cron_timezone="Mars", cron_next_fire_at=moment)
    assert next_fires(odd, moment) == [moment]
    assert "Mars" not in both_clocks(moment, "Mars")


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(-1, "0s"), (8.9, "8s"), (185, "3m05s"), (7_440, "2h04m"), (266_400, "3d02h")],
)
def test_how_long_a_run_took(seconds: float, told: str) -> None:
    assert duration(timedelta(seconds=seconds)) == told
