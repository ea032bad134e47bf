"""Notices: what causes one, and what is sent."""

from datetime import timedelta
from pathlib import Path

import pytest

from quarterdeck.store.notices import AttentionNotice, NoticeWatch
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.signals import ListChanged
from quarterdeck.tui.notices import Messenger, protocol_of, sequence_of
from quarterdeck.tui.options import Options
from quarterdeck.wire.base import utc_now
from tests.support.waiting import eventually
from tests.tui_shell.frozen import START, FrozenCockpit, screen_text


@pytest.fixture
def state(tmp_path: Path) -> ReplicaState:
    return FrozenCockpit(tmp_path).add("fix-login", processing=True)


def ask(state: ReplicaState, *, asks: bool = True) -> None:
    chat = state.first_chat
    assert chat is not None
    chat.record.awaiting_input = asks


def finish(state: ReplicaState) -> None:
    chat = state.first_chat
    assert chat is not None
    chat.record.processing = False
    state.done_at = START + timedelta(seconds=5)


def texts(found: list[AttentionNotice]) -> list[str]:
    return [notice.text for notice in found]


def test_what_is_found_at_the_start_has_not_just_happened(state: ReplicaState) -> None:
    ask(state)
    watch = NoticeWatch()
    assert watch.look([state], None) == []
    assert watch.look([state], None) == []


def test_one_notice_until_it_is_looked_at(state: ReplicaState) -> None:
    watch = NoticeWatch()
    watch.look([state], None)
    ask(state)
    assert texts(watch.look([state], None)) == ["fix-login asks you something"]
    ask(state, asks=False)
    assert watch.look([state], None) == []
    ask(state)
    assert watch.look([state], None) == []
    watch.look([state], state.id)
    ask(state, asks=False)
    watch.look([state], None)
    ask(state)
    assert len(watch.look([state], None)) == 1


def test_another_state_is_told_too(state: ReplicaState) -> None:
    watch = NoticeWatch()
    watch.look([state], None)
    finish(state)
    assert texts(watch.look([state], None)) == ["fix-login has finished"]
    state.record.status = "error"
    assert texts(watch.look([state], None)) == ["fix-login failed"]


def test_a_plan_is_told_as_a_plan(state: ReplicaState) -> None:
    watch = NoticeWatch()
    watch.look([state], None)
    state.done_at = START + timedelta(seconds=5)
    assert state.first_chat is not None
    state.first_chat.end_turn(processing=False, plan_ready=True)
    assert texts(watch.look([state], None)) == ["fix-login has a plan for you to review"]


def test_what_is_looked_at_needs_no_notice(state: ReplicaState) -> None:
    watch = NoticeWatch()
    watch.look([state], state.id)
    ask(state)
    assert watch.look([state], state.id) == []


def test_a_closer_look_is_no_event(state: ReplicaState) -> None:
    watch = NoticeWatch()
    state.detailed = False
    watch.look([state], None)
    state.detailed = True
    ask(state)
    assert watch.look([state], None) == []


@pytest.mark.parametrize(
    ("environment", "protocol"),
    [
        ({"TERM_PROGRAM": "iTerm.app"}, "9"),
        ({"TERM": "xterm-kitty"}, "9"),
        ({"TERM": "foot-extra"}, "777"),
        ({"VTE_VERSION": "7600", "TERM": "xterm-256color"}, "777"),
        ({"TERM": "xterm-256color"}, "bell"),
        ({"TERM_PROGRAM": "tmux", "LC_TERMINAL": "iTerm2", "TERM": "tmux-256color"}, "9"),
    ],
)
def test_the_terminal_is_told_in_its_own_way(environment: dict[str, str], protocol: str) -> None:
    assert protocol_of(environment) == protocol


@pytest.mark.parametrize("protocol", ["9", "777"])
def test_nothing_in_a_name_reaches_the_terminal_as_a_command(protocol: str) -> None:
    sequence = sequence_of(protocol, "a\x1b]52;c;aGk=\x07\x9c\x1b\\;b\u202e\n")
    inner = sequence.removeprefix("\x1b]").removesuffix("\a")
    assert all(character.isprintable() for character in inner)
    assert inner.count(";") == (1 if protocol == "9" else 3)


async def sent(setting: str, environment: dict[str, str]) -> str:
    written: list[str] = []
    messenger = Messenger(written.append, environment)
    state_id = FrozenCockpit(Path("/nowhere")).add("x").id
    await messenger.send(AttentionNotice(state_id, "x has finished"), setting)
    return "".join(written)


async def test_settings_of_notices() -> None:
    iterm = {"TERM_PROGRAM": "iTerm.app"}
    assert await sent("off", iterm) == ""
    assert await sent("bell", iterm) == "\a"
    assert await sent("osc", iterm) == "\x1b]9;quarterdeck: x has finished\a"
    assert await sent("osc", {"TERM": "xterm"}) == "\a"


@pytest.mark.parametrize(("allowed", "passes"), [("on", True), ("all", True), ("off", False)])
async def test_tmux_is_asked_and_passes_on_what_it_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: str, passes: bool
) -> None:
    tmux = tmp_path / "tmux"
    tmux.write_text(f"#!/bin/sh\necho {allowed}\n")
    tmux.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    written = await sent("osc", {"TMUX": "/tmp/tmux-0/default,1,0", "LC_TERMINAL": "iTerm2"})
    wrapped = "\x1bPtmux;\x1b\x1b]9;quarterdeck: x has finished\a\x1b\\"
    assert written == (wrapped if passes else "\a")


async def test_the_cockpit_tells_of_what_is_not_on_the_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM_PROGRAM", "iTerm.app")
    monkeypatch.delenv("TMUX", raising=False)
    app = FrozenCockpit(tmp_path, options=Options())
    shown, other = app.add("shown"), app.add("other", processing=True)
    written: list[str] = []
    monkeypatch.setattr(app, "write_outside", written.append)
    async with app.run_test(size=(100, 30)) as pilot:
        await eventually(lambda: "other" in screen_text(app))
        await pilot.press("end", "enter")
        await eventually(lambda: app.app_state.on_screen == shown.id)
        app._watch()  # pyright: ignore[reportPrivateUsage]
        app.app_state.publish(ListChanged())
        ask(shown)
        finish(other)
        other.done_at = utc_now()
        app.app_state.publish(ListChanged())
        await eventually(lambda: written)
        await pilot.pause()
    assert written == ["\x1b]9;quarterdeck: other has finished\a"]
