"""Which replica stands beside the list, and when."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from textual.app import ComposeResult
from textual.pilot import Pilot

from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.signals import ReplicaChanged
from quarterdeck.tui.panes import replica as pane_module
from quarterdeck.tui.panes.replica import ReplicaHolder, agents_words
from quarterdeck.tui.screens.main import MainScreen
from quarterdeck.tui.transcript_view import TranscriptView
from quarterdeck.tui.widgets.replica_list import ReplicaListView
from tests.support.waiting import eventually
from tests.tui_shell.frozen import FrozenCockpit, said, screen_text
from tests.tui_transcript.view_app import talk

NEVER = 3_600.0


@pytest.fixture
def two(frozen: FrozenCockpit) -> tuple[ReplicaState, ReplicaState]:
    """One that was read, above one that was not."""
    known, unread = frozen.add("alpha"), frozen.add("beta")
    known.environment_read = True
    return known, unread


def shown(app: FrozenCockpit) -> UUID | None:
    pane = next((one.pane for one in app.screen.query(ReplicaHolder)), None)
    return pane.replica_id if pane else None


async def tell(app: FrozenCockpit, pilot: Pilot[None], state: ReplicaState) -> None:
    """The service answers."""
    state.environment_read = True
    app.app_state.publish(ReplicaChanged(state.id))
    await pilot.pause()


async def test_what_was_shown_stays_until_the_next_one_is_read(
    frozen: FrozenCockpit,
    two: tuple[ReplicaState, ReplicaState],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pane_module, "SETTLE_SECONDS", NEVER)
    known, unread = two
    async with frozen.run_test(size=(80, 24)) as pilot:
        await eventually(lambda: shown(frozen) == known.id)
        await pilot.press("j")
        await eventually(lambda: frozen.app_state.on_screen == unread.id)
        assert shown(frozen) == known.id
        await tell(frozen, pilot, unread)
        await eventually(lambda: shown(frozen) == unread.id)


async def test_a_slow_service_is_not_waited_for_long(
    frozen: FrozenCockpit, two: tuple[ReplicaState, ReplicaState]
) -> None:
    _, unread = two
    async with frozen.run_test(size=(80, 24)) as pilot:
        await pilot.press("j")
        await eventually(lambda: shown(frozen) == unread.id)
        assert frozen.app_state.on_screen == unread.id


async def test_back_again_before_the_next_one_is_read(
    frozen: FrozenCockpit,
    two: tuple[ReplicaState, ReplicaState],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pane_module, "SETTLE_SECONDS", NEVER)
    monkeypatch.setattr(pane_module, "RESTING", 0.0)
    known, unread = two
    async with frozen.run_test(size=(80, 24)) as pilot:
        await eventually(lambda: shown(frozen) == known.id)
        await pilot.press("j")
        await eventually(lambda: frozen.app_state.on_screen == unread.id)
        await pilot.press("k")
        await eventually(lambda: frozen.app_state.on_screen == known.id)
        await tell(frozen, pilot, unread)
        assert shown(frozen) == known.id


async def test_a_pane_that_is_worked_in_stays_and_is_the_one_looked_at(
    frozen: FrozenCockpit,
    two: tuple[ReplicaState, ReplicaState],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pane_module, "SETTLE_SECONDS", NEVER)
    known, unread = two
    async with frozen.run_test(size=(80, 24)) as pilot:
        await eventually(lambda: shown(frozen) == known.id)
        await pilot.press("enter")
        await eventually(lambda: frozen.screen.query_one(ReplicaHolder).has_focus_within)
        await frozen.screen.query_one(ReplicaHolder).follow(unread.id)
        assert (shown(frozen), frozen.app_state.on_screen) == (known.id, known.id)


async def test_who_goes_to_work_in_the_pane_meanwhile_keeps_it(
    frozen: FrozenCockpit,
    two: tuple[ReplicaState, ReplicaState],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pane_module, "SETTLE_SECONDS", NEVER)
    known, unread = two
    async with frozen.run_test(size=(80, 24)) as pilot:
        await eventually(lambda: shown(frozen) == known.id)
        await pilot.press("j")
        await eventually(lambda: frozen.app_state.on_screen == unread.id)
        pane = frozen.screen.query_one(ReplicaHolder).pane
        assert pane is not None
        pane.focus_tab()
        await tell(frozen, pilot, unread)
        await eventually(lambda: frozen.app_state.on_screen == known.id)
        assert shown(frozen) == known.id


async def test_a_closing_cockpit_changes_nothing_any_more(
    frozen: FrozenCockpit,
    two: tuple[ReplicaState, ReplicaState],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known, _ = two
    async with frozen.run_test(size=(80, 24)):
        await eventually(lambda: shown(frozen) == known.id)
        holder = frozen.screen.query_one(ReplicaHolder)
        with monkeypatch.context() as closing:
            closing.setattr(frozen, "_running", False)
            await holder.say("first")
            await holder.say("second")
        assert len(holder.children) == 1


async def test_a_screen_without_its_parts_shows_no_keys(
    frozen: FrozenCockpit, two: tuple[ReplicaState, ReplicaState]
) -> None:
    known, _ = two
    async with frozen.run_test(size=(80, 24)) as pilot:
        await eventually(lambda: shown(frozen) == known.id)
        await frozen.screen.remove_children()
        frozen.screen.post_message(ReplicaListView.Highlighted(known.id))
        frozen.screen.post_message(ReplicaHolder.Shown())
        frozen.app_state.publish(ReplicaChanged(known.id))
        await pilot.pause()
    assert not frozen.failures.path.exists()


async def test_a_cockpit_that_is_closed_while_it_starts(
    frozen: FrozenCockpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = MainScreen.compose

    def close_first(screen: MainScreen) -> ComposeResult:
        monkeypatch.setattr(frozen, "_running", False)
        return parts(screen)

    monkeypatch.setattr(MainScreen, "compose", close_first)
    async with frozen.run_test(size=(80, 24)):
        await eventually(lambda: not frozen.is_running)
    assert not frozen.failures.path.exists()


async def test_a_chat_is_shown_where_it_was_left_unless_a_turn_has_ended_since(
    frozen: FrozenCockpit,
) -> None:
    state = frozen.add("alpha")
    said(state, talk(40))
    other = frozen.add("beta")
    said(other, talk(2))
    async with frozen.run_test(size=(120, 30)) as pilot:

        async def other_and_back() -> None:
            for key, wanted in (("j", other), ("k", state)):
                await pilot.press(key)
                await eventually(lambda wanted=wanted: shown(frozen) == wanted.id)
                await pilot.pause()

        await eventually(lambda: "answer 39" in screen_text(frozen))
        frozen.screen.query_one(TranscriptView).action_page(-1)
        await eventually(lambda: "answer 39" not in screen_text(frozen))
        left = frozen.screen.query_one(TranscriptView).reading_position
        await other_and_back()
        assert frozen.screen.query_one(TranscriptView).reading_position == left
        state.done_at, state.seen_at = datetime(2026, 1, 2, tzinfo=UTC), None
        await other_and_back()
        await eventually(lambda: "answer 39" in screen_text(frozen))


def test_the_agents_of_the_hint_stay_in_their_column() -> None:
    assert agents_words(["builtin"], 5) == "✓ builtin · 5 not available"
    first, second = agents_words(["codex", "opencode", "builtin"], 3).split("\n")
    assert first == "✓ codex ✓ opencode ✓ builtin"
    assert second == " " * 20 + "3 not available"
    assert agents_words(["builtin"], 0) == "✓ builtin"
