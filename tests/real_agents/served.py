"""What an environment gives to agents in replicas, and a person who answers whatever is asked."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.real_agents.codex import notes
from tests.real_agents.model.server import Asked
from tests.real_agents.model.thread import ModelThread
from tests.support.installation import Installation
from tests.support.waiting import until

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
INSTRUCTIONS = "Speak of nothing but pears."
SKILL = "pear-peeling"
SKILL_TOLD = "How a pear is peeled here."
NOTES = "/workspace/notes"
PLANTED = "planted-in-a-tool-server"
_SKILL = f"---\nname: {SKILL}\ndescription: {SKILL_TOLD}\n---\nFrom its top.\n"
_START = 100.0
"""Seconds for a turn that an agent may have to start for: some take long, or wait for a minute."""

Files = Mapping[str, str]


def equipped(
    deck: Installation,
    path: str,
    files: Files,
    variables: Mapping[str, str],
    name: str = "equipped",
) -> str:
    """Id of an environment with instructions, a skill, a tool server, and these files."""
    name = f"{name} {uuid4()}"  # a test that is run again makes another
    body = {"name": name, "system_prompt": INSTRUCTIONS}
    id = deck.post("/v1/environments", body, 201)["environment"]["id"]
    own = f"/v1/environments/{id}"
    told = {**files, "notes.py": Path(notes.__file__).read_text()}
    for number, (place, content) in enumerate(told.items()):
        file = {"name": f"file {number}", "path": f"~/{place}", "content": content}
        deck.post(f"{own}/files", file, 201)
    for key, value in {**variables, "PATH": f"{path}:{SYSTEM_PATH}"}.items():
        deck.post(f"{own}/variables", {"key": key, "value": value}, 201)
    source = deck.base / name / SKILL
    source.mkdir(parents=True)
    (source / "SKILL.md").write_text(_SKILL)
    deck.post(f"{own}/skills", {"name": SKILL, "slug": SKILL, "source": str(source)}, 201)
    command = {
        "command": "sh",
        "args": ["-c", f"NOTES={NOTES} exec python3 -I ~/notes.py"],
        "env": {"SECRET": PLANTED},
    }
    server = {"name": "notes", "transport": "stdio", "config": command}
    deck.post(f"{own}/mcps", server, 201)
    return id


def chat_of(deck: Installation, id: str, agent: str) -> dict[str, Any]:
    return next(one for one in deck.replica(id)["chats"] if one["provider"] == agent)


def texts(deck: Installation, id: str, chat: str) -> str:
    """What the agent said in a chat."""
    events = deck.get(f"/v1/replica/{id}/history?chat_id={chat}")["events"]
    chunks = [one["payload"] for one in events if "content" in one["payload"]]
    spoken = [one for one in chunks if one.get("sessionUpdate") == "agent_message_chunk"]
    return "".join(one["content"]["text"] for one in spoken)


def awaited(deck: Installation, id: str) -> list[dict[str, Any]]:
    """What was asked and not answered yet."""
    history = deck.history(id)
    closed = {e["payload"]["requestId"] for e in history if e["type"] == "acp-permission_outcome"}
    asked = [e["payload"] for e in history if e["type"] == "acp-permission_request"]
    return [one for one in asked if one["requestId"] not in closed]


def answer_all(deck: Installation, id: str, chat: str, kind: str = "allow_once") -> None:
    """Answers what is asked, each with the first option of a kind."""
    for one in awaited(deck, id):
        option = next(o["optionId"] for o in one["options"] if o["kind"] == kind)
        answer = {"requestId": one["requestId"], "optionId": option}
        told = deck.ask("POST", f"/v1/replica/{id}/chats/{chat}/respond", answer)
        assert told.status_code in (200, 409), told.text  # it may have just been answered


def ended(
    deck: Installation, id: str, sent: dict[str, Any], kind: str = "allow_once"
) -> dict[str, Any]:
    """The end of a turn, in which everything that is asked is answered in one way."""

    def end() -> list[dict[str, Any]] | None:
        answer_all(deck, id, sent["chat_id"], kind)
        return deck.results(id).get(sent["message_id"])

    what = f"the end of {sent}"
    (result,) = until(end, what, seconds=_START)
    return result


def turn(deck: Installation, id: str, message: str, **body: Any) -> dict[str, Any]:
    """Sends a message and waits for its end."""
    return ended(deck, id, deck.send(id, message, **body))


def asked_of(model: ModelThread, words: str) -> Asked:
    """The newest request in a talk that holds these words.

    Agents ask models of their own beside the talk: for titles, for what may be said next.
    """
    requests = reversed(model.model.requests)
    return next(r for r in requests if r.body.get("tools") and words in json.dumps(r.body))
