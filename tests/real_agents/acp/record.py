"""Records a chat with an agent for the tests of transcripts.

`python -m tests.real_agents.acp.record AGENT FILE` writes it: one event of the history a line. Paths
and moments are made the same in each recording; ids are the agent's own.
"""

import asyncio
import json
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from quarterdeck.agents.acp.session import AcpSession
from quarterdeck.agents.port import Prompt
from quarterdeck.wire.history import AgentEvent, AgentEventType
from tests.real_agents.acp.agents import ALL, RealAgent
from tests.real_agents.acp.place import ALLOW, REJECT, Place
from tests.real_agents.acp.servers import notes_server
from tests.real_agents.model.anthropic import Anthropic
from tests.real_agents.model.chat import Chat
from tests.real_agents.model.gemini import Gemini
from tests.real_agents.model.server import Model

START = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
CHAT: tuple[tuple[str, dict[str, Any]], ...] = (
    ("think I look first.\nshell cat shop.txt; ls\nsay The shop is **closed**.", {}),
    ("shell rm shop.txt\nsay It is gone.", {"answers": REJECT}),
    ("shell rm shop.txt\nsay Now it is gone.", {"answers": ALLOW}),
    ("plan Walk; Run\nsay Planned.", {"plan_mode": True}),
    ('mcp notes add {"text": "remember"}\nsay Noted.', {}),
    ("ask Which way? | Left | Right\nsay Asked.", {}),
    ("shell echo no >&2; exit 3\nsay That failed.", {}),
    ("fail 401", {}),
    ("say I wait.\nwait stop\nsay Never.", {"stop": True}),
)


async def run(place: Place, session: AcpSession, number: int) -> None:
    """One turn, between the events that the engine puts around it."""
    text, how = CHAT[number]
    message_id, plan_mode = f"message-{number}", bool(how.get("plan_mode"))
    asked = {"messageId": message_id, "text": text, "planMode": plan_mode, "goalMode": False}
    await place.heard(_own(AgentEventType.USER_MESSAGE, asked))
    place.answers = how.get("answers", ALLOW)
    turn = asyncio.create_task(session.prompt(Prompt(message_id, text, plan_mode=plan_mode)))
    if "stop" in how:
        await place.model.waits("stop")
        await session.interrupt()
        place.model.release("stop")
    outcome = await turn
    result = {"messageId": message_id, "stopReason": outcome.stop_reason}
    told = {"error": outcome.error, "usage": outcome.usage}
    await place.heard(_own(AgentEventType.TURN_RESULT, {**result, **told}))


def _own(type: AgentEventType, payload: dict[str, Any]) -> AgentEvent:
    return AgentEvent(timestamp=START, type=type.value, payload=payload)


def lines(place: Place) -> list[str]:
    """The history, with nothing of this machine in it."""
    found: list[str] = []
    for number, event in enumerate(place.heard.events):
        at = (START + timedelta(seconds=number)).isoformat().replace("+00:00", "Z")
        told = {"timestamp": at, "type": event.type, "payload": event.payload}
        text = json.dumps(told, ensure_ascii=False)
        for path, name in ((place.directory, "workspace"), (place.home, "home/agent")):
            text = text.replace(str(path), f"/{name}").replace(str(path).lstrip("/"), name)
        found.append(text.replace(place.model.url.partition("//")[2], "127.0.0.1:8000"))
    return found


async def record(agent: RealAgent, base: Path) -> list[str]:
    """Runs the chat and returns its history."""
    async with Model.running(Chat(), Anthropic(), Gemini()) as model:
        place = Place(agent, base, model, servers=(notes_server(base / "workspace" / "notes"),))
        (place.directory / "shop.txt").write_text("closed\n")
        try:
            session = await place.open()
            for number in range(len(CHAT)):
                await run(place, session, number)
            return lines(place)
        finally:
            await place.close()


def main(name: str, target: Path) -> None:
    with tempfile.TemporaryDirectory() as base:
        history = asyncio.run(record(ALL[name], Path(base)))
        target.write_text("\n".join(history) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
