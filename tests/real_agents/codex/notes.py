"""A tool server over standard input and output: its tool `add` writes a line into $NOTES."""

import json
import os
import sys
from pathlib import Path
from typing import Any

TOOL = {
    "name": "add",
    "description": "Adds a note.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
    "annotations": {"destructiveHint": False, "openWorldHint": False, "readOnlyHint": False},
}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "notes", "version": "1"},
            }
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            text = params["arguments"]["text"]
            with Path(os.environ["NOTES"]).open("a") as notes:
                notes.write(f"{text}\n")
            return {"content": [{"type": "text", "text": f"noted: {text}"}]}
        case _:
            return {}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            result = answer(message["method"], message.get("params") or {})
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()
