"""Records a chat with codex for the tests of transcripts.

`python -m tests.real_agents.codex.record FILE` writes it: one event of the history a line. Paths
and moments are made the same in each recording; ids are codex's own.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from quarterdeck.agents.codex.session import CodexSession
from quarterdeck.agents.port import Prompt
from quarterdeck.wire.history import AgentEvent, AgentEventType
from quarterdeck.wire.setup import McpServer
from tests.agents.conftest import Heard
from tests.real_agents.codex.place import ROOT, Place
from tests.real_agents.model.responses import Responses
from tests.real_agents.model.server import Model

START = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
_PATCH = r"*** Begin Patch\n*** Update File: shop.txt\n@@\n-closed\n+open\n*** End Patch"
CHAT: tuple[tuple[str, dict[str, Any]], ...] = (
    ("think I look first.\nshell cat shop.txt; ls\nsay The shop is **closed**.", {}),
    (f"""tool exec_command {{"cmd": "apply_patch <<'EOF'\\n{_PATCH}\\nEOF"}}\nsay Opened.""", {}),
    ("shell touch approved\nsay Touched.", {"answer": "accept"}),
    ("shell touch refused\nsay Not touched.", {"answer": "decline"}),
    ("ask Which way? | Left | Right\nplan Walk; Run", {"answer": "0", "plan_mode": True}),
    ('mcp notes add {"text": "remember"}\nsay Noted.', {}),
    ("shell echo no >&2; exit 3\nsay That failed.", {}),
    ("fail 429", {}),
    ("say I wait.\nshell sleep 1000", {"stop": True}),
)


@asynccontextmanager
async def place(base: Path) -> AsyncIterator[Place]:
    """A place below an empty directory, with a shop that is closed."""
    home, directory = base / "home", base / "workspace"
    home.mkdir()
    directory.mkdir()
    (directory / "shop.txt").write_text("closed\n")
    async with Model.running(Responses()) as model:
        made = Place(home, directory, model, Heard())
        made.ask_always()
        notes = {"NOTES": str(directory / "notes"), "PYTHONPATH": str(ROOT)}
        command = ["-m", "tests.real_agents.codex.notes"]
        config = {"command": sys.executable, "args": command, "env": notes}
        made.servers = [McpServer(name="notes", transport="stdio", config=config)]
        yield made
        for session in made.sessions:
            await session.close()


async def run(place: Place, session: CodexSession, number: int) -> None:
    """One turn, between the events that the engine puts around it."""
    text, how = CHAT[number]
    message_id = f"message-{number}"
    asked = {"messageId": message_id, "text": text, "planMode": bool(how.get("plan_mode"))}
    await place.heard(_own(AgentEventType.USER_MESSAGE, {**asked, "goalMode": False}))
    before = len(place.heard.events)
    prompt = Prompt(message_id, text, plan_mode=bool(how.get("plan_mode")))
    turn = asyncio.create_task(session.prompt(prompt))
    if "answer" in how:
        request = await _next(place, before, "acp-permission_request")
        await session.respond(request.payload["requestId"], how["answer"], None)
    if "stop" in how:
        await _next(place, before, "acp-session_update", "tool_call")
        await session.interrupt()
    outcome = await turn
    result = {"messageId": message_id, "stopReason": outcome.stop_reason}
    told = {"error": outcome.error, "usage": outcome.usage}
    await place.heard(_own(AgentEventType.TURN_RESULT, {**result, **told}))


async def _next(place: Place, after: int, type: str, kind: str | None = None) -> AgentEvent:
    def fits(event: AgentEvent) -> bool:
        new = event in place.heard.events[after:]
        return new and event.type == type and event.payload.get("sessionUpdate") == kind

    return await place.heard.until(fits)


def _own(type: AgentEventType, payload: dict[str, Any]) -> AgentEvent:
    return AgentEvent(timestamp=START, type=type.value, payload=payload)


def lines(place: Place) -> list[str]:
    """The history, with nothing of this machine in it."""
    found: list[str] = []
    for number, event in enumerate(place.heard.events):
        at = (START + timedelta(seconds=number)).isoformat().replace("+00:00", "Z")
        told = {"timestamp": at, "type": event.type, "payload": event.payload}
        text = json.dumps(told, ensure_ascii=False)
        text = text.replace(str(place.directory), "/workspace").replace(
            str(place.home), "/home/agent"
        )
        found.append(text.replace(place.model.url, "http://127.0.0.1:8000"))
    return found


async def record(base: Path) -> list[str]:
    """Runs the chat and returns its history."""
    async with place(base) as made:
        session = await made.open()
        for number in range(len(CHAT)):
            await run(made, session, number)
        return lines(made)


def main(target: Path) -> None:
    with tempfile.TemporaryDirectory() as base:
        target.write_text("\n".join(asyncio.run(record(Path(base)))) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
