"""An agent that speaks in pieces, asks before it changes a file, and can be interrupted.

mend        asks; mends the README and says so, or says that it left it
run ...     asks whether it may run a command, and says the answer
wait ...    runs until it is canceled
else        says the text
"""

import json
import sys
from itertools import count
from pathlib import Path

OPTIONS = [
    {"optionId": "yes", "name": "Yes, mend it", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
NUMBERS = count(1)
DIFF = {"type": "diff", "path": "README", "oldText": "A shop.\n", "newText": "A better shop.\n"}


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tell(update, /, **fields):
    update = {"sessionUpdate": update, **fields}
    send(method="session/update", params={"sessionId": "s1", "update": update})


def say(*pieces):
    for piece in pieces:
        tell("agent_message_chunk", content={"type": "text", "text": piece})


def next_message():
    line = sys.stdin.readline()
    if not line:
        raise SystemExit
    return json.loads(line)


def ask(call):
    """Return the id of the option that answers a request; None when the turn is canceled."""
    params = {"sessionId": "s1", "toolCall": call, "options": OPTIONS}
    id = call["toolCallId"]
    send(id=id, method="session/request_permission", params=params)
    while True:
        message = next_message()
        if message.get("method") == "session/cancel":
            return None
        if message.get("id") == id:
            return message["result"]["outcome"].get("optionId")


def mend():
    id = f"call {next(NUMBERS)}"
    call = {"toolCallId": id, "title": "Edit README", "kind": "edit"}
    tell("tool_call", **call, status="pending", content=[DIFF])
    answer = ask(call)
    if answer is None:
        return "cancelled"
    if answer != "yes":
        tell("tool_call_update", toolCallId=id, status="failed")
        say("I left it ", "alone.")
        return "end_turn"
    Path("README").write_text("A better shop.\n")
    tell("tool_call_update", toolCallId=id, status="completed")
    say("The README is \x1b[31mmen", "ded.\x1b[0m It sells", " apples.")
    return "end_turn"


def run(command):
    call = {"toolCallId": f"call {next(NUMBERS)}", "title": command, "kind": "execute"}
    call["rawInput"] = {"command": command}
    tell("tool_call", **call, status="pending")
    answer = ask(call)
    if answer is None:
        return "cancelled"
    status = "completed" if answer == "yes" else "failed"
    tell("tool_call_update", toolCallId=call["toolCallId"], status=status)
    say("I may run it." if answer == "yes" else "I may not run it.")
    return "end_turn"


def turn(text):
    if text.startswith("mend"):
        return mend()
    if text.startswith("run "):
        return run(text.removeprefix("run "))
    if text.startswith("wait"):
        say("Waiting. ")
        while next_message().get("method") != "session/cancel":
            pass
        return "cancelled"
    say(f"You said: {text}.")
    return "end_turn"


while True:
    message = next_message()
    match message.get("method"):
        case "initialize":
            send(id=message["id"], result={"protocolVersion": 1, "agentCapabilities": {}})
        case "session/new":
            send(id=message["id"], result={"sessionId": "s1"})
        case "session/prompt":
            prompt = message["params"]["prompt"]
            text = "".join(block.get("text", "") for block in prompt)
            send(id=message["id"], result={"stopReason": turn(text)})
