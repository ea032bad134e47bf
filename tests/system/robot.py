"""An agent of a person's own, for the tests: tells whether it and its children have a key."""

import json
import os
import subprocess
import sys
from pathlib import Path


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def say(text):
    content = {"type": "text", "text": text}
    update = {"sessionUpdate": "agent_message_chunk", "content": content}
    send(method="session/update", params={"sessionId": "s1", "update": update})


def given():
    """Which variables hold a key here, and which in a shell that is started from here."""
    own = sorted(name for name in os.environ if name.endswith("_API_KEY"))
    shell = subprocess.run(["sh", "-c", "env"], capture_output=True, text=True, check=True).stdout
    inherited = sorted(line.partition("=")[0] for line in shell.splitlines() if "_API_KEY=" in line)
    return f"{Path(sys.argv[0]).name} has {own}, its shell {inherited}"


ANSWERS = {
    "initialize": lambda: {"protocolVersion": 1, "agentCapabilities": {}},
    "session/new": lambda: {"sessionId": "s1"},
    "session/prompt": lambda: say(given()) or {"stopReason": "end_turn"},
}

for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked and asked.get("method") in ANSWERS:
        send(id=asked["id"], result=ANSWERS[asked["method"]]())
