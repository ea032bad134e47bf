"""Keys of agents are not recorded, whatever prints them."""

import json
from pathlib import Path

import pytest

from quarterdeck.engine.journal import Journal, Redactor, event, note
from quarterdeck.wire.events import EventType
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
