"""Keys of agents are not recorded, whatever prints them."""

import json
from pathlib import Path
from uuid import uuid4

import pytest

from quarterdeck.engine.journal import Journal, event, note
from quarterdeck.engine.redaction import Redactor
from quarterdeck.wire.engine import OpenChat
from quarterdeck.wire.events import EventType
from quarterdeck.wire.setup import Setup
from tests.support.trees import files_under

KEY = 'sk-"quoted"-and-long\\é'


@pytest.mark.parametrize("credential", [KEY, f"OPENAI_API_KEY={KEY}"])
async def test_a_key_is_in_no_entry_and_no_note(tmp_path: Path, credential: str) -> None:
    journal = await Journal.open(tmp_path, lambda type, line: None)
    credentials = {"codex": "", "other": "short"}
    journal.hide = Redactor(credentials)
    payload = {"output": f"OPENAI_API_KEY={KEY}\nHOME=/home/agent short\n"}
    await journal.append(event(EventType.ERROR, payload))
    credentials["codex"] = credential  # a claim gives it to an engine that runs
    await journal.append(event(EventType.ERROR, payload), note("kept", payload))
    found = []
    async for lines in journal.follow(0):
        found += [json.loads(line)["payload"]["output"] for _, line in lines]
        if len(found) == 2:
            break
    await journal.close()
    assert found[0] == payload["output"]
    assert found[1] == "OPENAI_API_KEY=********\nHOME=/home/agent short\n"
    kept = b"".join(content for _, content in files_under(tmp_path))
    assert kept.count(json.dumps(KEY, ensure_ascii=False)[1:-1].encode()) == 1  # the first one's


async def test_a_key_quoted_in_pieces_is_not_recorded(place, agents, message) -> None:
    key = "sk-secret-key-1"
    place.setup = Setup(credentials={"fake": f"FAKE_API_KEY={key}"})
    await place.start(agents.FakeCatalog())
    entries, link = await place.entries(), await place.link()
    chat = uuid4()
    await link.chat_open(OpenChat(chat_id=chat, provider="fake"))
    await link.chat_send(message(chat, "say it:s sk-s ecret- key-1 s sk- not-a-key s"))
    await entries.wait("chat.turn.completed")
    events = [e.payload["event"] for e in entries.all if e.type == "chat.turn.delta"]
    updates = [e["payload"] for e in events if e["type"] == "acp-session_update"]
    assert "".join(one["content"]["text"] for one in updates) == "it:s********ssk-not-a-keys"
    changed = await entries.wait("chat.updated", 2)
    assert changed.payload["chat"]["lastMessageText"] == "it:s********ssk-not-a-keys"
