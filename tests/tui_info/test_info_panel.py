"""The info panel: what it says, its links, and that it costs nothing while it is hidden."""

from uuid import UUID

import pytest

from quarterdeck.tui.kit.spans import plain
from quarterdeck.tui.panes import replica
from quarterdeck.tui.screens.main import MainScreen
from quarterdeck.tui.widgets import info as panel
from quarterdeck.tui.widgets.info import rows_of
from quarterdeck.tui.widgets.lines import HeadLine
from tests.tui_info.known import ENVIRONMENT, known_replica, see
from tests.tui_shell.frozen import START, FrozenCockpit, screen_text

WIDE = (160, 44)


def test_everything_that_is_known_is_said_and_links_are_safe(frozen: FrozenCockpit) -> None:
    state = known_replica(frozen)
    rows = rows_of(
        state, state.first_chat, {ENVIRONMENT: "shop"}, {"codex": "Codex\x1b"}.__getitem__, 31
    )
    said = "\n".join(plain(row.words for row in rows))
    for words in (
        "○ idle",
        "shop qd/fix-login +120 -8",
        "Goal (active)",
        "41k of 100k tokens, 12 m 02 s",
        "3000",
        "shop #12",
        "2 variables, 1 skill",
        "Codex · gpt-x",
        "context 41k of 200k",
        "last turn 3.5k tokens",
        "cost $0.42",
        "small, not limited",
        "isolated by bubblewrap",
        "sleeps after 30 min",
    ):
        assert words in said
    assert "\x1b" not in said
    links = {span.text: span.link for row in rows for span in row.words if row.key and span.link}
    assert links["http://127.0.0.1:41000/"] == "http://127.0.0.1:41000/"
    # What a browser must not be given is shown, but is no link.
    assert "javascript:alert(1)" in {row.key for row in rows} - set(links)


def test_what_is_not_known_is_left_out(frozen: FrozenCockpit) -> None:
    state = frozen.add("bare", status="sleeping", environment_id=str(UUID(int=77)))
    said = "\n".join(plain(row.words for row in rows_of(state, None, {}, str, 31)))
    assert "☾ sleeping" in said
    for words in ("Goal", "Previews", "Pull requests", "Repositories", "Environment", "None"):
        assert words not in said


def test_a_replica_whose_service_does_not_answer_says_since_when(frozen: FrozenCockpit) -> None:
    state = frozen.add("lost", unreachable_since=START)
    said = "\n".join(plain(row.words for row in rows_of(state, None, {}, str, 40)))
    assert f"unreachable since {START.astimezone():%d %b %H:%M}" in said


async def test_an_address_is_copied_by_key(frozen: FrozenCockpit) -> None:
    known_replica(frozen)
    async with frozen.run_test(size=WIDE) as pilot:
        await see(pilot, "http://127.0.0.1:41000/")
        await pilot.press("o", "down", "y")
        await pilot.pause()
        assert frozen.clipboard == "http://127.0.0.1:41001/"
        await pilot.press("tab")
        assert type(frozen.focused).__name__ == "Composer"


async def test_it_is_shown_by_itself_in_a_wide_window_only(frozen: FrozenCockpit) -> None:
    known_replica(frozen)
    async with frozen.run_test(size=(149, 44)) as pilot:
        await see(pilot, "ctx 21% · $0.42")  # its vital facts are in the head line
        assert not frozen.screen.query(panel.InfoPanel)  # it is not even mounted
        await pilot.resize_terminal(150, 44)
        await see(pilot, "Previews")
        await pilot.resize_terminal(149, 44)
        await see(pilot, "Previews", gone=True)
        await pilot.press("f2")
        await see(pilot, "Previews")
        await pilot.press("f2")
        await see(pilot, "Previews", gone=True)
        await pilot.resize_terminal(150, 44)
        await pilot.pause()
        assert "Previews" not in screen_text(frozen)  # as the user chose


@pytest.mark.parametrize(
    ("word", "opened"),
    [
        ("$0.42", "Previews"),
        ("+", "[3 Changes]"),
        ("goal ", "Goal of the chat"),
    ],
)
async def test_a_click_on_a_word_of_the_head_line_opens_what_it_is_about(
    frozen: FrozenCockpit, word: str, opened: str
) -> None:
    known_replica(frozen)
    async with frozen.run_test(size=(149, 44)) as pilot:
        await see(pilot, "ctx 21% · $0.42")
        line = frozen.screen.query_one(HeadLine)
        text = "".join(part.text for part in line.render_line(0))
        assert opened not in screen_text(frozen)
        await pilot.click(line, offset=(text.rindex(word), 0))
        await see(pilot, opened)


async def test_a_click_on_the_head_line_is_about_its_replica_while_another_is_read(
    frozen: FrozenCockpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica, "SETTLE_SECONDS", 3600.0)
    known_replica(frozen)
    other = frozen.add("other")
    async with frozen.run_test(size=(149, 44)) as pilot:
        await see(pilot, "ctx 21% · $0.42")
        main = frozen.screen
        assert isinstance(main, MainScreen)
        told: list[str] = []
        monkeypatch.setattr(main, "tell", lambda _, about, __: told.append(about))
        main.listing.select(other.id)
        await pilot.pause()
        assert main.chosen is other
        line = main.query_one(HeadLine)
        text = "".join(part.text for part in line.render_line(0))
        await pilot.click(line, offset=(text.rindex("qd/fix-login"), 0))
        await pilot.pause()
        assert told == ["fix-login"]  # that it has no repository


@pytest.mark.parametrize(("used", "warns"), [(158_000, False), (160_000, True)])
async def test_a_context_that_is_nearly_full_is_warned_of(
    frozen: FrozenCockpit, used: int, warns: bool
) -> None:
    state = known_replica(frozen)
    chat = state.chat_to_show
    assert chat is not None
    chat.tokens = chat.tokens._replace(context=used)
    async with frozen.run_test(size=WIDE) as pilot:
        words = f"ctx {state.context_percent}%"
        await see(pilot, words)
        line = frozen.screen.query_one(HeadLine)
        (fact,) = (part for part in line.render_line(0) if part.text == words)
        warning = line.get_component_rich_style("head--warning")
        assert fact.style is not None
        assert (fact.style.color == warning.color) is warns


async def test_hidden_it_makes_and_reads_nothing(
    frozen: FrozenCockpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = known_replica(frozen)
    made: list[int] = []
    honest = panel.rows_of
    monkeypatch.setattr(panel, "rows_of", lambda *a: made.append(1) or honest(*a))
    async with frozen.run_test(size=WIDE) as pilot:
        await see(pilot, "Previews")
        assert made
        await pilot.press("f2")
        await see(pilot, "Previews", gone=True)
        made.clear()
        state.record.status = "sleeping"
        frozen.app_state.add(state.record)
        await pilot.pause()
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        await pilot.press("f2")
        assert [one.message for one in frozen._notifications] == ["Needs 120 columns or more."]
        assert "Previews" not in screen_text(frozen)
        assert not made
        await pilot.resize_terminal(*WIDE)
        await pilot.press("f2")
        await see(pilot, "Previews")
        assert made


@pytest.mark.parametrize(
    ("limited", "told"),
    [(True, "small: 2 CPU, 8 GB"), (False, "small, not limited"), (None, "small")],
)
def test_a_size_is_promised_only_where_it_holds(
    frozen: FrozenCockpit, limited: bool | None, told: str
) -> None:
    state = known_replica(frozen)
    assert state.record.environment is not None
    state.record.environment.size_limited = limited
    rows = [row.strip() for row in plain(row.words for row in rows_of(state, None, {}, str, 60))]
    assert any(row.startswith(told) for row in rows), rows
    assert limited or not any("CPU" in row for row in rows)
