"""What a test of a hook tells, however its end falls between two looks at the log."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.environments.hooks import follow_test
from quarterdeck.service.environments.rows import add_hook_log
from quarterdeck.service.environments.setup import TESTED
from quarterdeck.service.event_rows import NewEvent, StoredEvent
from quarterdeck.service.fleet.fleet import Fleet


@pytest.fixture
def database_kind() -> str:
    return "sqlite"


def idle_fleet() -> Fleet:
    """Begins nothing: the test itself says what the engine told."""

    async def end_trial(_: str) -> None:
        pass

    pools = SimpleNamespace(keep_trial=lambda _: None, end_trial=end_trial)
    of = SimpleNamespace(begin=lambda: None)
    return cast("Fleet", SimpleNamespace(pools=pools, of=lambda _: of))


async def tell_end(context: ServiceContext, id: str) -> None:
    """The hook's output and its end, as one batch of an engine."""
    progress = NewEvent("hooks.progress", {"hookName": TESTED, "output": "hello\n"})
    log = {"hookName": TESTED, "exitCode": 0, "output": "hello\n", "timedOut": False}
    await context.event_log.append(id, [progress], lambda c: add_hook_log(c, id, log))


async def test_what_a_hook_said_last_comes_before_its_end(
    context: ServiceContext, new_workspace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await new_workspace(context.database)
    await context.event_log.append(id, [NewEvent("pulse.progress", {})])
    read, ended = context.event_log.read_after, False

    async def read_after(workspace_id: str, index: int, limit: int) -> list[StoredEvent]:
        nonlocal ended
        found = await read(workspace_id, index, limit)
        if not found and not ended:
            ended = True
            await tell_end(context, id)  # right after the reader has seen that there is no more
        return found

    monkeypatch.setattr(context.event_log, "read_after", read_after)
    events: AsyncIterator[Any] = follow_test(context, idle_fleet(), id)
    told = [event.type async for event in events if event is not None]
    assert told == ["progress", "output", "complete"]
