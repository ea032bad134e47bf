"""An Agent Client Protocol agent that does what the message says. Standard library only.

wait ...   runs until it is canceled, or a file `go` lies in its directory
goal N     works; complete in the N-th turn that this directory has seen (`turns` counts them)
ask        asks for permission, then says which option was chosen; `ask 2` asks twice at once
run ...    asks for permission to run a command, then says which option was chosen
later      ends its turn, then asks for permission in one of its own
models     announces other models than before
settings   says the mode and the thinking level of its session
leave      changes to the mode "edits" by itself, as when a plan was approved
fail       refuses the message
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
    {"name": "goal", "description": "Its own goal."},
    {"name": "", "description": "nothing"},
]
unread = b""
messages = []


def next_message(timeout):
    """Return the next message, or None when there is none within so many seconds."""
    global unread
    while not messages:
        if not select.select([0], [], [], timeout)[0]:
            return None
        data = sys.stdin.buffer.raw.read(1 << 16)
        if not data:
            sys.exit(0)
        *whole, unread = (unread + data).split(b"\n")
        messages.extend(json.loads(line) for line in whole)
    return messages.pop(0)


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def update(**fields):
    send(method="session/update", params={"sessionId": "s1", "update": fields})


def say(text):
    update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})


def canceled_or_let_go():
    while not Path("go").exists():
        if (next_message(0.01) or {}).get("method") == "session/cancel":
            return "cancelled"
    return "end_turn"


def pursue(wanted):
    with Path("turns").open("a") as turns:
        turns.write("x")
    update(sessionUpdate="tool_call", toolCallId="1", title="work", kind="other")
    done = len(Path("turns").read_text()) >= wanted
    say("GOAL: complete" if done else "more to do")
    return "end_turn"


def ask(times, **call):
    options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
    waiting_for = {f"ask {number}" for number in range(times)}
    for id in waiting_for:
        call = {"toolCallId": id, "title": "ask", **call}
        params = {"sessionId": "s1", "toolCall": call, "options": options}
        send(id=id, method="session/request_permission", params=params)
    while waiting_for:
        message = next_message(1) or {}
        if message.get("id") in waiting_for:
            waiting_for.discard(message["id"])
            say(json.dumps(message["result"]))
    return "end_turn"


session = {"mode": "ask", "effort": "low", "cost": 0.0}
MODES = [
    {"id": "ask", "name": "Ask first", "description": "Asks before it acts."},
    {"id": "edits", "name": "Accept edits"},
    {"id": "plan", "name": "Plan"},
]


def session_modes():
    return {"currentModeId": session["mode"], "availableModes": MODES}


def effort_option():
    levels = [{"value": id, "name": id.capitalize()} for id in ("low", "high", "ultra")]
    return {"id": "effort", "currentValue": session["effort"], "options": levels}


def model_option(*ids):
    options = [{"value": id, "name": id.upper()} for id in ids]
    return {"id": "model", "category": "model", "currentValue": ids[0], "options": options}


def prompt(message):
    blocks = message["params"]["prompt"]
    text = blocks[0]["text"] if blocks and "text" in blocks[0] else ""
    goal = re.search(r"^goal (\d+)", text, re.MULTILINE)
    update(sessionUpdate="available_commands_update", availableCommands=COMMANDS)
    if goal:
        reason = pursue(int(goal[1]))
    elif text.startswith("wait"):
        reason = canceled_or_let_go()
    elif asked := re.fullmatch(r"ask ?(\d*)", text):
        reason = ask(int(asked[1] or 1))
    elif text.startswith("run "):
        reason = ask(1, kind="execute", rawInput={"command": text.removeprefix("run ")})
    elif text == "later":
        send(id=message["id"], result={"stopReason": "end_turn"})
        ask(1)
        update(sessionUpdate="usage_update", used=1, size=2, _meta={"end": True})
        return
    elif text == "models":
        update(sessionUpdate="config_option_update", configOptions=[model_option("b", "c")])
        reason = "end_turn"
    elif text == "settings":
        say(f"settings {session['mode']} {session['effort']}")
        reason = "end_turn"
    elif priced := re.fullmatch(r"cost ([\d.]+)( wait)?", text):
        session["cost"] += float(priced[1])
        cost = {"amount": session["cost"], "currency": "USD"}
        update(sessionUpdate="usage_update", used=1, size=2, cost=cost)
        reason = canceled_or_let_go() if priced[2] else "end_turn"
    elif text == "leave":
        session["mode"] = "edits"
        update(sessionUpdate="current_mode_update", currentModeId="edits")
        reason = "end_turn"
    elif text == "fail":
        send(id=message["id"], error={"code": -32603, "message": "It does not want to."})
        return
    else:
        say(json.dumps(blocks))
        reason = "end_turn"
    usage = {"totalTokens": 10}
    send(id=message["id"], result={"stopReason": reason, "usage": usage})


while True:
    message = next_message(None)
    match message.get("method"):
        case "initialize":
            capabilities = {"promptCapabilities": {"image": True}, "loadSession": True}
            result = {"protocolVersion": 1, "agentCapabilities": capabilities}
            send(id=message["id"], result=result)
        case "session/new" | "session/load":
            options = [model_option("a", "b"), effort_option()]
            opened = {"sessionId": "s1", "configOptions": options, "modes": session_modes()}
            send(id=message["id"], result=opened)
        case "session/set_mode":
            session["mode"] = message["params"]["modeId"]
            send(id=message["id"], result={})
        case "session/set_config_option":
            if message["params"]["configId"] == "effort":
                session["effort"] = message["params"]["value"]
            send(id=message["id"], result={"configOptions": []})
        case "session/prompt":
            prompt(message)
