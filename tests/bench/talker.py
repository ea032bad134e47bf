"""An agent that talks: `many N` at once, `stream N` at a thousand pieces a second, `prose N` for N seconds.

Run as a script of its own, so it needs nothing but the standard library.
"""

import json
import sys
import time

PER_SECOND = 1_000
PROSE = (
    "The session cookie is read before the middleware has run, so the first request after a restart "
    "is answered as if nobody were logged in. Moving the check behind it is enough, and a test that "
    "restarts the server between two requests shows the difference.\n\n"
)
PIECES, PIECE = 30, 20
"""Pieces a second and characters in each: as fast as models write."""


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def update(sort, /, **fields):
    told = {"sessionUpdate": sort, **fields}
    send(method="session/update", params={"sessionId": "s1", "update": told})


def text(words):
    return {"type": "text", "text": words}


def many(count):
    """Paragraphs, thoughts and calls in turn."""
    for number in range(count // 4):
        update("agent_thought_chunk", content=text(f"Thought {number} about it."))
        call = {"toolCallId": f"t{number}", "title": f"cat file{number}.py", "kind": "read"}
        update("tool_call", **call, status="in_progress")
        printed = [{"type": "content", "content": text("one line\n" * 5)}]
        update("tool_call_update", toolCallId=f"t{number}", status="completed", content=printed)
        update("agent_message_chunk", content=text(f"Paragraph **{number}** says `this`.\n\n"))
    update("agent_message_chunk", content=text("that was the last one"))


def stream(count):
    """One piece a millisecond, in bursts of ten."""
    begun = time.monotonic()
    for number in range(count):
        end = "\n\n" if number % 60 == 59 else " "
        update("agent_message_chunk", content=text(f"word{number}{end}"))
        if number % 10 == 9:
            sys.stdout.flush()
            time.sleep(max(0.0, begun + number / PER_SECOND - time.monotonic()))
    update("agent_message_chunk", content=text("the stream is over"))


def prose(seconds):
    """Sentences at 600 characters a second."""
    begun = time.monotonic()
    written = PROSE * (seconds * PIECES * PIECE // len(PROSE) + 1)
    for number in range(seconds * PIECES):
        update("agent_message_chunk", content=text(written[number * PIECE : (number + 1) * PIECE]))
        sys.stdout.flush()
        time.sleep(max(0.0, begun + number / PIECES - time.monotonic()))
    update("agent_message_chunk", content=text("\n\nthat is all"))


def answer(asked):
    match asked.get("method"):
        case "initialize":
            return {"protocolVersion": 1, "agentCapabilities": {}}
        case "session/new":
            return {"sessionId": "s1"}
        case "session/prompt":
            verb, _, count = asked["params"]["prompt"][0]["text"].partition(" ")
            {"many": many, "stream": stream, "prose": prose}[verb](int(count))
            return {"stopReason": "end_turn"}
        case _:
            return {}


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked and "method" in asked:
        send(id=asked["id"], result=answer(asked))
        sys.stdout.flush()
