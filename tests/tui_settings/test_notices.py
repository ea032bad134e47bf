"""Notices: what causes one, and what is sent."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from quarterdeck.store.notices import AttentionNotice, NoticeWatch
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.signals import ListChanged
from quarterdeck.store.status import Attention
from quarterdeck.tui.host_terminal import TerminalAnswered, TerminalIdentity
from quarterdeck.tui.notices import Messenger, protocol_of, sequence_of
from quarterdeck.tui.options import NOTICE_OF, Options, is_quiet, read_options
from quarterdeck.tui.textual_ext.driver import AltKeyParser
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
        ({"TERM": "xterm-kitty"}, "99"),
        ({"TERM": "foot-extra"}, "777"),
        ({"VTE_VERSION": "7600", "TERM": "xterm-256color"}, "777"),
        ({"TERM": "xterm-256color"}, "bell"),
        ({"TERM_PROGRAM": "tmux", "LC_TERMINAL": "iTerm2", "TERM": "tmux-256color"}, "9"),
    ],
)
def test_the_terminal_is_told_in_its_own_way(environment: dict[str, str], protocol: str) -> None:
    assert protocol_of("", environment) == protocol


@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        ("kitty(0.35.2)", "99"),
        ("iTerm2 3.5.4", "9"),
        ("WezTerm 20240203-110809", "777"),
        ("ghostty 1.1.0", "777"),
        ("foot(1.18.0)", "777"),
        ("VTE(7600)", "777"),
        ("xterm-kitty", "99"),
        ("Konsole 23.08.1", "bell"),
        ("XTerm(390)", "bell"),
    ],
)
def test_what_the_terminal_says_counts_before_variables(name: str, protocol: str) -> None:
    assert (
        protocol_of(name, {"TERM_PROGRAM": "WarpTerminal"} if protocol != "bell" else {})
        == protocol
    )
    assert protocol_of("Konsole 23", {"TERM_PROGRAM": "iTerm.app"}) == "bell"
    assert protocol_of("xterm-256color", {"LC_TERMINAL": "iTerm2"}) == "9"


def test_answers_are_told_from_keys() -> None:
    parser = AltKeyParser()

    def read(*pieces: str) -> list[str | None]:
        found = [event for piece in pieces for event in parser.feed(piece)]
        return [getattr(event, "name", None) or getattr(event, "key", None) for event in found]

    assert read("a\x1bP>|kitty(0.35.2)\x1b\\b") == ["a", "kitty(0.35.2)", "b"]
    assert read("\x1b[?62;22c") == [None]
    assert read("x\x1bP>|foo", "t(1.1", "8)\x1b", "\\\x1b[?6", "2cy") == [
        "x",
        "foot(1.18)",
        None,
        "y",
    ]
    pasted = list(parser.feed("\x1b[200~\x1b[?1c\x1b[201~."))
    assert not any(isinstance(event, TerminalAnswered) for event in pasted)


@pytest.mark.parametrize("late", [True, False])
def test_what_only_begins_like_an_answer_is_read_as_before(late: bool) -> None:
    parser = AltKeyParser()
    assert list(parser.feed("\x1b[?2026")) == []
    if late:  # it is held no longer
        parser._held_until = 0.0  # pyright: ignore[reportPrivateUsage]
        assert list(parser.tick()) == [] and not parser._held  # pyright: ignore
    found = [type(event).__name__ for event in parser.feed(";2$yq")]
    assert found == ["TerminalSupportsSynchronizedOutput", "Key"]


async def test_the_answer_is_waited_for_a_moment_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    identity = TerminalIdentity()
    assert await identity.name() == ""  # not asked
    identity.expect()
    identity.take(TerminalAnswered("kitty(0.35.2)"))
    assert await identity.name() == "kitty(0.35.2)"
    silent = TerminalIdentity()
    silent.expect()
    monkeypatch.setattr("quarterdeck.tui.host_terminal.ANSWER_SECONDS", 0.01)
    assert await silent.name() == ""
    monkeypatch.setattr("quarterdeck.tui.host_terminal.ANSWER_SECONDS", 1e6)
    assert await silent.name() == ""


@pytest.mark.parametrize(
    ("attention", "notices", "rule", "kind"),
    [
        (Attention.ASKS, "osc", "desktop", "desktop"),
        (Attention.PLAN, "osc", "bell", "bell"),
        (Attention.FAILED, "osc", "off", "off"),
        (Attention.DONE_UNSEEN, "bell", "desktop", "bell"),
        (Attention.DONE_UNSEEN, "bell", "off", "off"),
        (Attention.ASKS, "off", "desktop", "off"),
    ],
)
def test_each_state_has_a_rule(attention: Attention, notices: str, rule: str, kind: str) -> None:
    table = {"notices": notices, NOTICE_OF[attention]: rule}
    options = read_options({"cockpit": table})
    assert not options.faults and options.kind_of_notice(attention) == kind


@pytest.mark.parametrize(
    ("hours", "quiet", "loud"),
    [
        ("22:00-07:00", ["22:00", "23:59", "00:00", "06:59"], ["07:00", "12:00", "21:59"]),
        ("12:30-13:00", ["12:30", "12:59"], ["12:29", "13:00", "00:00"]),
        ("", [], ["00:00", "12:00"]),
    ],
)
def test_quiet_hours(hours: str, quiet: list[str], loud: list[str]) -> None:
    options = read_options({"cockpit": {"quiet": hours}})
    assert not options.faults
    for wanted, times in ((True, quiet), (False, loud)):
        for one in times:
            assert is_quiet(options.quiet, datetime.fromisoformat(f"2026-11-26T{one}")) is wanted


@pytest.mark.parametrize("hours", ["22-7", "22:00", "24:00-07:00", "07:00-07:00", 7])
def test_wrong_quiet_hours_are_a_fault(hours: object) -> None:
    options = read_options({"cockpit": {"quiet": hours}})
    assert options.quiet == "" and "such as 22:00-07:00" in options.faults[0]


@pytest.mark.parametrize("protocol", ["9", "777"])
def test_nothing_in_a_name_reaches_the_terminal_as_a_command(protocol: str) -> None:
    sequence = sequence_of(protocol, "a\x1b]52;c;aGk=\x07\x9c\x1b\\;b\u202e\n")
    inner = sequence.removeprefix("\x1b]").removesuffix("\a")
    assert all(character.isprintable() for character in inner)
    assert inner.count(";") == (1 if protocol == "9" else 3)


def test_kitty_gets_a_title_and_a_body_that_replaces_the_one_before() -> None:
    sequence = sequence_of("99", "a\x1b\\\x07b", "42")
    assert sequence == "\x1b]99;i=qd42:d=0;quarterdeck\x1b\\\x1b]99;i=qd42:p=body;ab\x1b\\"


async def sent(
    setting: str, environment: dict[str, str], quiet: str = "", name: str | None = None
) -> str:
    written: list[str] = []
    identity = TerminalIdentity()
    identity.take(TerminalAnswered(name))
    messenger = Messenger(written.append, identity, environment)
    state_id = FrozenCockpit(Path("/nowhere")).add("x").id
    notice = AttentionNotice(state_id, "x has finished")
    await messenger.send(notice, Options(notices=setting, quiet=quiet))
    return "".join(written)


async def test_settings_of_notices() -> None:
    iterm = {"TERM_PROGRAM": "iTerm.app"}
    assert await sent("off", iterm) == ""
    assert await sent("bell", iterm) == "\a"
    assert await sent("osc", iterm) == "\x1b]9;quarterdeck: x has finished\a"
    assert await sent("osc", {"TERM": "xterm"}) == "\a"
    assert "]777;" in await sent("osc", iterm, name="WezTerm 1")
    assert await sent("osc", iterm, name="tmux 3.5a") == "\a"  # on another machine
    now = datetime.now()
    around = "-".join(f"{now + timedelta(hours=by):%H:%M}" for by in (-1, 1))
    assert await sent("osc", iterm, around) == ""


@pytest.mark.parametrize(("allowed", "passes"), [("on", True), ("all", True), ("off", False)])
async def test_tmux_is_asked_and_passes_on_what_it_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: str, passes: bool
) -> None:
    tmux = tmp_path / "tmux"
    tmux.write_text(f"#!/bin/sh\ntest $1 = show && echo {allowed} || echo xterm-256color\n")
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
