"""An Agent Client Protocol agent that does what the message says. Standard library only.

wait ...   runs until it is canceled, or a file `go` lies in its directory
goal N     works; complete in the N-th turn that this directory has seen (`turns` counts them)
ask        asks for permission, then says which option was chosen
else       says the text, and what came with it
"""

import json
import re
import select
import sys
from pathlib import Path

COMMANDS = [
    {"name": "review", "description": "Review the changes.", "input": {"hint": "what"}},
    {"name": "plan", "description": "Its own plan."},
    {"name": "", "description": "nothing"},
]
waiting = b""


def lines(timeout):
    """Messages that are there, after at most some seconds."""
    global waiting
    if select.select([0], [], [], timeout)[0]:
        data = sys.stdin.buffer.raw.read(1 << 16)
        if not data:
            sys.exit(0)
        waiting += data
    *whole, waiting = waiting.split(b"\n")
    return [json.loads(line) for line in whole]


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def update(**fields):
    send(method="session/update", params={"sessionId": "s1", "update": fields})


def say(text):
    update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})


def canceled_or_let_go():
    while not Path("go").exists():
        if any(one.get("method") == "session/cancel" for one in lines(0.01)):
            return "cancelled"
    return "end_turn"


def pursue(wanted):
    with Path("turns").open("a") as turns:
        turns.write("x")
    update(sessionUpdate="tool_call", toolCallId="1", title="work", kind="other")
    done = len(Path("turns").read_text()) >= wanted
    say("GOAL: complete" if done else "more to do")
    return "end_turn"


def ask():
    options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
    call = {"toolCallId": "2", "title": "ask"}
    params = {"sessionId": "s1", "toolCall": call, "options": options}
    send(id="ask", method="session/request_permission", params=params)
    while True:
        for message in lines(1):
            if message.get("id") == "ask":
                say(json.dumps(message["result"]))
                return "end_turn"


def prompt(message):
    blocks = message["params"]["prompt"]
    text = blocks[0]["text"] if blocks and "text" in blocks[0] else ""
    goal = re.search(r"^goal (\d+)", text, re.MULTILINE)
    update(sessionUpdate="available_commands_update", availableCommands=COMMANDS)
    if goal:
        reason = pursue(int(goal[1]))
    elif text.startswith("wait"):
        reason = canceled_or_let_go()
    elif text == "ask":
        reason = ask()
    else:
        say(json.dumps(blocks))
        reason = "end_turn"
    usage = {"totalTokens": 10}
    send(id=message["id"], result={"stopReason": reason, "usage": usage})


while True:
    for message in lines(None):
        match message.get("method"):
            case "initialize":
                capabilities = {"promptCapabilities": {"image": True}, "loadSession": True}
                result = {"protocolVersion": 1, "agentCapabilities": capabilities}
                send(id=message["id"], result=result)
            case "session/new" | "session/load":
                send(id=message["id"], result={"sessionId": "s1"})
            case "session/prompt":
                prompt(message)
