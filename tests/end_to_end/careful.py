"""An agent for a day of work: asks before it edits a file, and follows comments."""

import json
import sys
from itertools import count
from pathlib import Path

NUMBERS = count(1)
OPTIONS = [
    {"optionId": "yes", "name": "Yes, edit it", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tell(update):
    send(method="session/update", params={"sessionId": "s1", "update": update})


def say(text):
    tell({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})


def allowed():
    """Asks, and waits for the answer."""
    number = f"q{next(NUMBERS)}"
    call = {"toolCallId": number, "title": "Edit the README", "kind": "edit", "status": "pending"}
    tell({"sessionUpdate": "tool_call", **call})
    params = {"sessionId": "s1", "toolCall": call, "options": OPTIONS}
    send(id=number, method="session/request_permission", params=params)
    for line in sys.stdin:
        answer = json.loads(line)
        if answer.get("id") == number:
            return answer["result"]["outcome"].get("optionId") == "yes"
    raise SystemExit


def turn(params):
    text = "".join(block.get("text", "") for block in params["prompt"])
    if "Comments on your changes" in text:
        say("Both comments are taken to heart.")
    elif allowed():
        Path("README").write_text("A better shop.\nIt sells apples.\nAnd pears.\n")
        say("The README is mended.")
    return {"stopReason": "end_turn"}


ANSWERS = {
    "initialize": lambda params: {"protocolVersion": 1, "agentCapabilities": {}},
    "session/new": lambda params: {"sessionId": "s1"},
    "session/prompt": turn,
}

if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked and asked.get("method") in ANSWERS:
            send(id=asked["id"], result=ANSWERS[asked["method"]](asked.get("params")))
