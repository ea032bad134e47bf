"""A form as a person meets it."""

import contextlib
from pathlib import Path
from typing import Any

import pytest
from textual.app import App

from quarterdeck.client.errors import ConflictError
from quarterdeck.tui.environments.dialogs import FILE
from quarterdeck.tui.forms.kit import Field, FieldKind, ModelForm
from quarterdeck.wire.automations import CreateAutomation
from quarterdeck.wire.environment_parts import (
    ChangeVariable,
    CreateFile,
    CreateVariable,
    StdioConfig,
)
from tests.support.waiting import eventually
from tests.tui_forms.conftest import Desk

KEY = Field("key", help="What programs read.", rule="Letters, digits and _")
VALUE = Field("value", kind=FieldKind.LINES, secret=True, rows=3)


def variable(**start: Any) -> ModelForm:
    return ModelForm(CreateVariable, [KEY, VALUE, Field("personal_override_allowed")], start)


async def test_what_is_typed_is_saved() -> None:
    desk = Desk(variable)
    async with desk.app.run_test(size=(80, 24)) as pilot:
        await desk.open(pilot)
        await desk.press(*"SHOP", "tab", *"one", "enter", *"two", "tab", "space", "ctrl+s")
    body = CreateVariable(key="SHOP", value="one\ntwo", personal_override_allowed=True)
    assert desk.saved == [body]
    assert desk.closed == [body]


async def test_a_fault_is_said_beside_its_field_and_nothing_is_lost() -> None:
    async def refuse(body: CreateVariable) -> None:
        if body.key == "TAKEN":
            raise ConflictError("The environment has it.", status=409, details="key: TAKEN")

    desk = Desk(variable, refuse)
    async with desk.app.run_test(size=(80, 24)) as pilot:
        await desk.open(pilot)
        await desk.press(*"1X", "tab", *"kept", "ctrl+s")
        assert desk.form.row("key").error == "Letters, digits and _."
        assert desk.app.focused is desk.form.row("key").control
        await desk.press("ctrl+u", *"TAKEN")
        assert not desk.form.row("key").error  # typing takes it away
        await desk.press("ctrl+s")
        assert desk.form.row("key").error == "The environment has it."
        assert not desk.closed
        await desk.press("2", "ctrl+s")
    assert desk.saved == [CreateVariable(key="TAKEN2", value="kept")]


async def test_secrets_are_masked_until_asked() -> None:
    desk = Desk(lambda: variable(key="A", value="hunter2 über 秘密"))
    async with desk.app.run_test(size=(80, 24)) as pilot:
        await desk.open(pilot)
        assert "hunter2" not in desk.text and "über" not in desk.text and "秘" not in desk.text
        assert "•••••••" in desk.text
        await desk.press("ctrl+t")
        assert "hunter2 über 秘密" in desk.text
        await desk.press("ctrl+t")
        assert "hunter2" not in desk.text


async def test_escape_asks_when_something_is_unsaved() -> None:
    desk = Desk(lambda: variable(key="A", value="1"))
    async with desk.app.run_test(size=(80, 24)) as pilot:
        await desk.open(pilot)
        await desk.press("end", "B", "escape")
        assert "Unsaved changes" in desk.text and "key" in desk.text
        await desk.press("escape")
        assert not desk.closed and desk.form.dirty
        await desk.press("escape", "s")
    assert desk.saved == [CreateVariable(key="AB", value="1")]


async def test_changes_can_be_dropped_and_none_close_at_once() -> None:
    desk = Desk(lambda: variable(key="A", value="1"))
    async with desk.app.run_test(size=(80, 24)) as pilot:
        await desk.open(pilot)
        await desk.press("end", "B", "escape", "d")
        assert desk.closed == [None] and not desk.saved
    again = Desk(lambda: variable(key="A", value="1"))
    async with again.app.run_test(size=(80, 24)) as pilot:
        await again.open(pilot)
        await again.press("end", "B", "backspace", "escape")
        assert again.closed == [None]


async def test_line_ends_of_another_system_are_no_change() -> None:
    start = {"key": "A", "value": "1\r\n2\n3"}
    desk = Desk(lambda: ModelForm(ChangeVariable, [KEY, VALUE], start, changes_only=True))
    async with desk.app.run_test(size=(80, 24)) as pilot:
        await desk.open(pilot)
        assert not desk.form.dirty
        await desk.press("end", "B", "ctrl+s")
    assert [body.model_dump(exclude_unset=True) for body in desk.saved] == [{"key": "AB"}]


FOLDED = [
    Field("name"),
    Field("prompt", kind=FieldKind.LINES, rows=4),
    *(Field(name, folded=True) for name in ("description", "debounce_seconds", "goal_mode")),
]


async def test_rare_fields_are_folded_and_open_where_they_are_wrong() -> None:
    start = {"environment_id": "0d6a2b8e-0000-4000-8000-000000000000"}
    fields = [*FOLDED, Field("environment_id", options=[("Shop", start["environment_id"])])]
    desk = Desk(lambda: ModelForm(CreateAutomation, fields, start))
    async with desk.app.run_test(size=(80, 24)) as pilot:
        await desk.open(pilot)
        assert "More options (3)" in desk.text and "Debounce" not in desk.text
        desk.form.put("debounce_seconds", "soon")
        await pilot.pause()
        await desk.press(*"a", "tab", *"b", "ctrl+s")
        assert "whole number" in desk.text
        assert desk.app.focused is desk.form.row("debounce_seconds").control
        await desk.press("ctrl+u", *"60", "ctrl+s")
    (body,) = desk.saved
    assert isinstance(body, CreateAutomation)
    assert (body.name, body.prompt, body.debounce_seconds) == ("a", "b", 60)


async def test_a_long_form_scrolls_in_a_small_window() -> None:
    names = ("description", "debounce_seconds", "model", "agent_provider", "thinking_level")
    fields = [*FOLDED[:2], *(Field(name) for name in names), Field("plan_mode")]
    desk = Desk(lambda: ModelForm(CreateAutomation, fields))
    async with desk.app.run_test(size=(50, 14)) as pilot:
        await desk.open(pilot)
        assert "Name" in desk.text and "Plan mode" not in desk.text and "ctrl+s" in desk.text
        await desk.press("shift+tab", *["tab"] * 8)
        assert "Plan mode" in desk.text and "ctrl+s" in desk.text


@pytest.mark.parametrize("kind", [FieldKind.TEXT, FieldKind.LINES])
async def test_what_comes_from_elsewhere_reaches_no_terminal(kind: FieldKind) -> None:
    hostile = "a\x1b]52;c;aGk=\x07b\x9b31m\u202ec[/nothing]"
    fields = [Field("command", kind=kind, label="[/no]"), Field("env", options=[(hostile, "1")])]
    desk = Desk(lambda: ModelForm(StdioConfig, fields[:1], {"command": hostile}))
    async with desk.app.run_test(size=(80, 24)) as pilot:
        await desk.open(pilot)
        assert "b31mc[/nothing]" in desk.text.replace("\u200c", "")
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(desk.text)
        assert desk.form.value("command") == hostile


async def test_choices_from_elsewhere_are_no_markup_and_stay_chosen() -> None:
    first = "0d6a2b8e-0000-4000-8000-000000000000"
    field = Field("environment_id", options=[("[/x]\x1b[31m", first)])
    desk = Desk(lambda: ModelForm(CreateAutomation, [field], {"environment_id": first}))
    async with desk.app.run_test(size=(80, 24)) as pilot:
        await desk.open(pilot)
        assert "[/x]" in desk.text and not desk.form.dirty
        desk.form.offer("environment_id", [("[b]two", "2")])
        await desk.press("enter")
        assert "[b]two" in desk.text
        assert desk.form.value("environment_id") == first
        await desk.press("down", "enter")
        assert desk.form.changed == ["environment_id"]


async def test_the_text_of_a_field_is_edited_in_the_persons_editor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "editor"
    script.write_text('#!/bin/sh\nprintf \'two\\n\' >> "$1"\nstat -c %a "$1" > "$0.mode"\n')
    script.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(script))
    monkeypatch.setattr(App, "suspend", lambda self: contextlib.nullcontext())
    fields = [Field("command"), Field("args"), Field("env", secret=True)]
    desk = Desk(lambda: ModelForm(StdioConfig, fields, {"command": "x", "args": ["one", ""]}))
    async with desk.app.run_test(size=(80, 24), notifications=True) as pilot:
        await desk.open(pilot)
        await desk.press("tab", "ctrl+o")
        await eventually(lambda: desk.form.value("args") == ["one", "two"])
        await desk.press("tab", "ctrl+o")
        await eventually(lambda: "not written to a file" in desk.text)
        await desk.press("ctrl+s")
    assert desk.saved == [StdioConfig(command="x", args=["one", "two"])]
    assert (tmp_path / "editor.mode").read_text() == "600\n"


async def test_what_is_chosen_gets_its_words_when_they_are_known() -> None:
    fields = [
        Field("environment_id", kind=FieldKind.CHOICE),
        Field("agent_provider", kind=FieldKind.CHOICE),
    ]
    start = {"environment_id": "e1", "agent_provider": "codex"}
    desk = Desk(lambda: ModelForm(CreateAutomation, fields, start))
    async with desk.app.run_test(size=(80, 24)) as pilot:
        await desk.open(pilot)
        desk.form.offer("environment_id", [("the shop", "e1"), ("the yard", "e2")])
        desk.form.offer("agent_provider", [("Codex", "codex")])
        await pilot.pause()
        assert "the shop" in desk.text and "Codex" in desk.text


async def test_what_is_chosen_of_several_is_seen_without_colors() -> None:
    options = [("opened", "a"), ("merged", "b")]
    field = Field("description", kind=FieldKind.CHOICES, options=options)
    desk = Desk(lambda: ModelForm(CreateAutomation, [field], {"description": ["b"]}))
    async with desk.app.run_test(size=(80, 24)) as pilot:
        await desk.open(pilot)
        assert "[ ] opened" in desk.text and "[x] merged" in desk.text
        await desk.press("space")
        assert "[x] opened" in desk.text
        await pilot.click("SeveralField", offset=(1, 1))
        await pilot.pause()
        assert "[ ] merged" in desk.text


@pytest.mark.parametrize(
    ("path", "name"), [("~/.config/tool.toml", "tool.toml"), ("Makefile", "Makefile"), ("", "")]
)
async def test_a_text_is_called_in_the_editor_as_its_path_ends(path: str, name: str) -> None:
    desk = Desk(lambda: ModelForm(CreateFile, FILE, {"path": path}))
    async with desk.app.run_test(size=(80, 24)) as pilot:
        await desk.open(pilot)
        assert desk.form.editor is not None
        assert desk.form.name_outside(desk.form.editor) == name
