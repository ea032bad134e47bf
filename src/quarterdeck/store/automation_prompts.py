"""What the agent of a run was told: the composed prompt, as its replica's history has it."""

from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING

from quarterdeck.wire.automations import Execution
from quarterdeck.wire.history import AgentEvent, AgentEventType

if TYPE_CHECKING:
    from quarterdeck.client.client import Client

FIRST = 20
"""Events from the beginning of a replica, among which the prompt of its own run is."""
PAGE = 400
MOST_PAGES = 10
"""Of a long history that a run has joined."""
CLOCKS = timedelta(seconds=5)
"""Of the engine and the service, which may differ by so much."""
HEADING = "## Trigger\n"


async def composed_prompt(client: "Client", run: Execution) -> str | None:
    """The message that a run began with; None when it is not there (yet, or any more).

    Raises:
        NotFound: the replica is gone.
        ClientError: refused or unreachable.
    """
    if run.workspace_id is None:
        return None
    page = await client.history.page(run.workspace_id, limit=FIRST, before_event=FIRST)
    found = prompt_in(page.events, run)
    return found if found is not None else await _later(client, run)


async def _later(client: "Client", run: Execution) -> str | None:
    """That of a run which went to a replica that was there: searched from the end backwards."""
    assert run.workspace_id is not None  # looked at by the only caller
    found: str | None = None
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await client.history.page(run.workspace_id, limit=PAGE, before_cursor=cursor)
        found = prompt_in(page.events, run) or found
        cursor = page.before_cursor
        older = page.events and page.events[0].timestamp < run.triggered_at - CLOCKS
        if cursor is None or older:
            break
    return found


def prompt_in(events: Iterable[AgentEvent], run: Execution) -> str | None:
    """The first message of a trigger that came with the run, or after it began."""
    for event in events:
        if event.type != AgentEventType.USER_MESSAGE or event.timestamp < run.triggered_at - CLOCKS:
            continue
        text = event.payload.get("text")
        if isinstance(text, str) and HEADING in text:
            return text
    return None
