"""An agent that does what the message says, and then what no agent should.

It keeps its session's words in a file, so that a new process of it can be seen to go on.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

PAST = Path("past.json")


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def say(text: str) -> None:
    update = {
        "sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": text},
    }
    send(method="session/update", params={"sessionId": "s1", "update": update})


def read() -> dict[str, Any]:
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit(0)


def ask() -> dict[str, Any]:
    """A permission for a call that was never told."""
    call = {"toolCallId": "untold", "title": "rm -rf /tmp/x", "kind": "execute"}
    options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
    params = {"sessionId": "s1", "toolCall": call, "options": options}
    send(id="q", method="session/request_permission", params=params)
    return read()


def behave(text: str) -> None:
    match text.split()[0]:
        case "hang":
            time.sleep(1000)
        case "flood":
            for number in range(10_000):
                say(f"{number},")
        case "die":
            sys.stderr.write("out of memory\n")
            sys.stderr.flush()
            os._exit(3)
        case "garbage":
            sys.stdout.buffer.write(b"\xff\xfe not protocol\n{}\n[1]\n")
            say("still here")
        case "nonsense":
            sys.stdout.write("no protocol from here on\n")
            sys.stdout.close()
            os._exit(0)
        case "ask":
            say(json.dumps(ask().get("result")))
        case _:
            say(" ".join(past()))


def past() -> list[str]:
    return json.loads(PAST.read_text()) if PAST.exists() else []


def prompt(message: dict[str, Any]) -> None:
    text = message["params"]["prompt"][0]["text"]
    PAST.write_text(json.dumps([*past(), text]))
    if text == "refuse":
        error = {"code": -32603, "message": "Internal error", "data": {"status": 429}}
        send(id=message["id"], error=error)
        return
    behave(text)
    send(id=message["id"], result={"stopReason": "end_turn"})


def main() -> None:
    while True:
        message = read()
        match message.get("method"):
            case "initialize":
                capabilities = {"loadSession": True}
                result = {"protocolVersion": 1, "agentCapabilities": capabilities}
                send(id=message["id"], result=result)
            case "session/new":
                send(id=message["id"], result={"sessionId": "s1"})
            case "session/load":
                for text in past():
                    say(f"again: {text}")
                send(id=message["id"], result={})
            case "session/prompt":
                prompt(message)
            case _:
                pass


if __name__ == "__main__":
    main()
