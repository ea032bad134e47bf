"""Terminals that are opening while their tab, their replica or their session is removed."""

import asyncio
import types
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest

from quarterdeck.client.errors import ClientError, NotFoundError
from quarterdeck.store.app_state import AppState
from quarterdeck.tui.panes.terminal import TerminalPane
from quarterdeck.tui.panes.terminal_split import SplitSwitcher, key_of
from quarterdeck.tui.terminal.host import EmulatorHost
from quarterdeck.wire.terminals import TerminalSession
from tests.support.waiting import eventually
from tests.tui_shell.frozen import FrozenCockpit


def session(number: int) -> TerminalSession:
    return TerminalSession(
        id=UUID(int=number),
        title=f"bash {number}",
        created_at=datetime(2026, 1, 2, tzinfo=UTC),
        exited=False,
    )


async def turn() -> None:
    await asyncio.sleep(0)


class Sessions:
    """Terminals of a service, whose streams say nothing."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.error: ClientError | None = None
        self.meanwhile: Callable[[], Awaitable[object]] = turn
        """Awaited before an answer."""

    async def list(self, _: UUID) -> list[TerminalSession]:
        await self.meanwhile()
        if self.error is not None:
            raise self.error
        return [session(number) for number in range(1, self.count + 1)]

    async def create(self, _: UUID, *size: int) -> TerminalSession:
        self.count += 1
        await self.meanwhile()
        return session(self.count)

    async def close(self, *_: UUID) -> None:
        await asyncio.sleep(0)

    async def resize(self, *_: object) -> None:
        await asyncio.sleep(0)

    async def stream(self, *_: UUID) -> AsyncIterator[object]:
        await asyncio.Event().wait()
        yield


def pane_of(app: FrozenCockpit, sessions: Sessions, host: EmulatorHost) -> TerminalPane:
    replica = app.app_state.replicas[next(iter(app.app_state.replicas))]
    state = types.SimpleNamespace(
        terminals=app.app_state.terminals,
        replicas=app.app_state.replicas,
        client=types.SimpleNamespace(terminals=sessions),
    )
    return TerminalPane(cast("AppState", state), host, replica.id)


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("refused", [False, True])
async def test_the_contents_of_a_pane_are_removed_while_its_terminals_open(
    refused: bool, count: int, tmp_path: Path
) -> None:
    """As when its replica is deleted: widgets are removed before the one that they are in."""
    app = FrozenCockpit(tmp_path)
    host = EmulatorHost()
    async with app.run_test(size=(100, 30)) as pilot:
        app.add("alpha")
        await pilot.pause()
        sessions = Sessions(count)
        sessions.error = NotFoundError("deleted", status=404) if refused else None
        pane = pane_of(app, sessions, host)
        sessions.meanwhile = lambda: pane.query_children().remove()()
        await app.screen.mount(pane)
        pane.take_keys()
        await eventually(lambda: not pane.children)
        await app.workers.wait_for_complete()
        assert pane.current is None and app.is_running
        await pane.remove()
        await host.close()


async def opened(app: FrozenCockpit, host: EmulatorHost) -> TerminalPane:
    pane = pane_of(app, Sessions(1), host)
    await app.screen.mount(pane)
    pane.take_keys()
    await eventually(lambda: pane.current is not None)
    return pane


@pytest.mark.parametrize("beside", [False, None])
async def test_a_session_ends_while_its_view_is_created(
    beside: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = FrozenCockpit(tmp_path)
    host = EmulatorHost()
    async with app.run_test(size=(100, 30)) as pilot:
        app.add("alpha")
        await pilot.pause()
        pane = await opened(app, host)
        added = SplitSwitcher.add_content
        forgotten = asyncio.Event()

        def add(self: SplitSwitcher, *arguments: Any) -> Any:
            async def then_end() -> None:
                await added(self, *arguments)
                await pane._forget(key_of(UUID(int=2)))  # pyright: ignore[reportPrivateUsage]
                forgotten.set()

            return then_end()

        monkeypatch.setattr(SplitSwitcher, "add_content", add)
        if beside is None:
            pane._open_new(key_of(UUID(int=1)))  # pyright: ignore[reportPrivateUsage]
        else:
            pane._open_new(beside=beside)  # pyright: ignore[reportPrivateUsage]
        await asyncio.wait_for(forgotten.wait(), 60)
        await app.workers.wait_for_complete()
        assert app.is_running
        assert pane.current is not None and pane.current.id == key_of(UUID(int=1))
        await host.close()
