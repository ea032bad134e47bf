"""How the cockpit looks in states and sizes that the walk through every screen leaves out."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from textual.pilot import Pilot

from quarterdeck.store.creation import CreationChoices
from quarterdeck.store.disk import OutgoingMessage
from quarterdeck.store.status import ConnectionPhase
from quarterdeck.tui.forms import create
from quarterdeck.tui.widgets import replica_list
from quarterdeck.wire.agents import Agent
from quarterdeck.wire.base import utc_now
from quarterdeck.wire.replicas import ReplicaEnvironment
from tests.tui_shell.frozen import (
    START,
    FrozenCockpit,
    Story,
    every_block,
    queued,
    said,
    screen_text,
)

SMALL, WIDE, NARROW = (80, 24), (120, 40), (50, 20)

each_size = pytest.mark.parametrize("size", [SMALL, WIDE, NARROW], ids=["80x24", "120x40", "50x20"])


def press(*keys: str, until: str = "") -> Any:
    """Types, and waits until the screen is what was asked for."""

    async def run(pilot: Pilot[Any]) -> None:
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        for _ in range(300):
            if until in screen_text(pilot.app):
                break
            await pilot.pause(0.02)
        else:
            raise AssertionError(f"{until!r} is not on\n{screen_text(pilot.app)}")
        await pilot.pause()

    return run


def fleet(app: FrozenCockpit) -> None:
    """One replica in every state."""
    app.add("fix-login", awaiting_input=True)
    app.add("broken", "error", error="The engine did not start: no space left on device.")
    done = app.add("bump-deps")
    done.seen_at, done.done_at = done.record.created_at, utc_now()
    app.add("flaky-tests", processing=True)
    app.add("new-one", "preparing")
    app.add("spike")
    app.add("old-idea", "sleeping")
    app.add("a-very-long-name-" + "x" * 60, "archived")


@each_size
def test_first_start(snap_compare: Any, frozen: FrozenCockpit, size: tuple[int, int]) -> None:
    assert snap_compare(frozen, terminal_size=size, run_before=press(until="No replicas yet"))


@each_size
def test_list_of_every_state(
    snap_compare: Any, frozen: FrozenCockpit, size: tuple[int, int]
) -> None:
    fleet(frozen)
    shown = "archived" if size == NARROW else "[1 Chat]"
    assert snap_compare(frozen, terminal_size=size, run_before=press(until=shown))


@pytest.mark.parametrize("size", [SMALL, NARROW], ids=["80x24", "50x20"])
def test_groups_and_a_pinned_one(
    snap_compare: Any, frozen: FrozenCockpit, size: tuple[int, int]
) -> None:
    for name, repository in (("login", "shop"), ("search", "web"), ("spike", ""), ("docs", "web")):
        found = [{"id": UUID(int=3), "name": repository, "url": "https://host/x"}]
        frozen.add(name, awaiting_input=name == "search", repositories=found if repository else [])
    grouped = press("end", "p", "b", until="Pinned  1")
    beside = press(until="docs · builtin" if size[0] > 50 else "Pinned  1")

    async def wait(pilot: Pilot[Any]) -> None:
        await grouped(pilot)
        await beside(pilot)

    assert snap_compare(frozen, terminal_size=size, run_before=wait)


def questions() -> Story:
    """A question about a command, and another one after it."""
    story = Story().user("Build the package").say("I clean up first.")
    options = [
        {"optionId": "yes", "name": "Allow once", "kind": "allow_once"},
        {"optionId": "always", "name": "Always allow `rm`", "kind": "allow_always"},
        {"optionId": "no", "name": "Reject", "kind": "reject_once"},
    ]
    command = "rm -rf build/ dist/ *.egg-info && python -m build --sdist --wheel --outdir dist"
    for number in ("1", "2"):
        call = {"toolCallId": number, "title": "Build", "rawInput": {"command": command}}
        story.add("acp-permission_request", requestId=number, toolCall=call, options=options)
    return story


@pytest.mark.parametrize("size", [SMALL, WIDE, (40, 24)], ids=["80x24", "120x40", "40x24"])
def test_question(snap_compare: Any, frozen: FrozenCockpit, size: tuple[int, int]) -> None:
    said(frozen.add("fix-login", processing=True, awaiting_input=True), questions().events)
    assert snap_compare(frozen, terminal_size=size, run_before=press("enter", until="1 of 2"))


@each_size
def test_chat_of_every_block(
    snap_compare: Any, frozen: FrozenCockpit, size: tuple[int, int]
) -> None:
    state = frozen.add("fix-login", processing=True)
    said(state, every_block())
    queued(state, "Then write a test", "And a line in the changelog")
    assert snap_compare(frozen, terminal_size=size, run_before=press("enter", until="enter queues"))


@pytest.mark.long
def test_failed_in_a_narrow_window(snap_compare: Any, frozen: FrozenCockpit) -> None:
    frozen.add("broken", "error", error="The engine did not start: no space left on device.")
    assert snap_compare(frozen, terminal_size=NARROW, run_before=press("enter", until="w retry"))


def test_preparing(snap_compare: Any, frozen: FrozenCockpit) -> None:
    frozen.add("new-one", "preparing")
    assert snap_compare(frozen, terminal_size=SMALL, run_before=press("enter", until="Preparing"))


@pytest.mark.long
def test_sleeping(snap_compare: Any, frozen: FrozenCockpit) -> None:
    said(frozen.add("old-idea", "sleeping"), every_block())
    wait = press("enter", until="enter wakes and sends")
    assert snap_compare(frozen, terminal_size=SMALL, run_before=wait)


def test_terminal_of_a_sleeping_one(snap_compare: Any, frozen: FrozenCockpit) -> None:
    frozen.add("old-idea", "sleeping")
    assert snap_compare(frozen, terminal_size=SMALL, run_before=press("t", until="w wakes it"))


def test_not_isolated(snap_compare: Any, frozen: FrozenCockpit) -> None:
    state = frozen.add("open-one")
    state.record.environment = ReplicaEnvironment(
        isolation="none", isolation_note="bubblewrap cannot make a user namespace here."
    )
    assert snap_compare(frozen, terminal_size=SMALL, run_before=press(until="not isolated"))


@pytest.mark.long
def test_message_of_unknown_fate(snap_compare: Any, frozen: FrozenCockpit) -> None:
    state = frozen.add("one")
    assert state.first_chat is not None
    frozen.app_state.disk.save_outgoing(
        OutgoingMessage(
            key="k",
            replica_id=state.id,
            chat_id=state.first_chat.id,
            text="Did this arrive?",
            created_at=utc_now(),
        )
    )
    frozen.app_state.outbox.load()
    wait = press("enter", "shift+tab", until="delivery unknown")
    assert snap_compare(frozen, terminal_size=WIDE, run_before=wait)


def test_help_in_a_narrow_window(snap_compare: Any, frozen: FrozenCockpit) -> None:
    assert snap_compare(
        frozen, terminal_size=NARROW, run_before=press("?", until="Create a replica")
    )


def test_confirm_in_a_narrow_window(snap_compare: Any, frozen: FrozenCockpit) -> None:
    frozen.add("fix-login")
    assert snap_compare(
        frozen, terminal_size=NARROW, run_before=press("d", until="Delete fix-login")
    )


@pytest.mark.long
@each_size
def test_create_with_an_error(
    snap_compare: Any,
    frozen: FrozenCockpit,
    size: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def choices(client: object) -> CreationChoices:
        agents = [
            Agent(id="codex", name="Codex", available=False, reason="Not installed."),
            Agent(id="builtin", name="Built-in", available=True),
        ]
        return CreationChoices([], [], agents)

    async def models(client: object, agent_id: str) -> list[str]:
        return []

    frozen.add("fix-login")
    monkeypatch.setattr(create, "choices", choices)
    monkeypatch.setattr(create, "models_of", models)
    monkeypatch.setattr(type(frozen.app_state), "client", None)
    keys = ["n", *"Mend", *["tab"] * 6, "a", "space", "b", "ctrl+s"]
    assert snap_compare(frozen, terminal_size=size, run_before=press(*keys, until="Names cannot"))


@pytest.mark.long
def test_create_while_the_service_is_down(snap_compare: Any, frozen: FrozenCockpit) -> None:
    wait = press("n", *"Mend", until="follow when it answers")
    assert snap_compare(frozen, terminal_size=SMALL, run_before=wait)


@each_size
def test_reconnecting(snap_compare: Any, frozen: FrozenCockpit, size: tuple[int, int]) -> None:
    fleet(frozen)
    connection = frozen.app_state.connection
    connection.phase, connection.retry_in = ConnectionPhase.RECONNECTING, 4.0
    connection.problem = "No service answers at unix:/run/qd/service.sock."

    async def tell(pilot: Pilot[Any]) -> None:
        await press(until="sleeping")(pilot)  # so that the screen listens
        frozen.app_state.connection_changed()
        await press(until="Your input is kept")(pilot)

    assert snap_compare(frozen, terminal_size=size, run_before=tell)


@each_size
def test_several_services(snap_compare: Any, frozen: FrozenCockpit, size: tuple[int, int]) -> None:
    frozen.add("fix-login")
    frozen.add("spike")
    work = frozen.add_service("work")
    work.connection.phase, work.connection.latency_ms = ConnectionPhase.ONLINE, 42.0
    lab = frozen.add_service("laboratory")
    lab.connection.phase, lab.connection.retry_in = ConnectionPhase.RECONNECTING, 2.0
    frozen.add("fix-login", store=work, awaiting_input=True)
    frozen.add("a-name-that-is-long", store=lab)
    seen = press(until="laborat" if size == NARROW else "Waiting for your answer")
    assert snap_compare(frozen, terminal_size=size, run_before=seen)


def test_the_table_of_several_services(
    snap_compare: Any, frozen: FrozenCockpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_list, "utc_now", lambda: START + timedelta(days=5))
    frozen.add("fix-login")
    frozen.add("fix-login", store=frozen.add_service("work"), processing=True)
    seen = press("L", until="SERVICE")
    assert snap_compare(frozen, terminal_size=WIDE, run_before=seen)
