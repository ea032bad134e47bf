"""Text that would do harm to the terminal that it reached."""

import base64

COPIED = base64.b64encode(b"stolen").decode()

HOSTILE = (
    "see\x1b]52;c;" + COPIED + "\x07\x1b]0;owned\x07\x1b]8;;http://evil\x1b\\me"
    "\x1b[2J\x1b[?1049l\x1b[31m\x9b6n\x90q\x9c\x1bP+q\x1b\\\x1bc\x0e\x07\x08\r"
    "\u202egnp.exe\u202c\u2066x\u2069"
    + "\u200b" * 500
    + "\u2060" * 50
    + "a"
    + "\u0301" * 300
    + "\U000e0041\ufeff[red]markup[/red][@click=app.exit]go[/]"
)

NEVER = {
    "a clipboard sequence": COPIED.encode(),
    "any clipboard sequence": b"\x1b]52",
    "a title": b"owned",
    "a link elsewhere": b"http://evil",
    "a cleared screen": b"\x1b[2J",
    "a report asked for": b"6n",
    "a reset": b"\x1bc",
    "a device string": b"\x1bP",
    "another character set": b"\x0e",
    "a bell": b"\x07",
    "a backspace": b"\x08",
    "C1": b"\xc2\x9b",
    "the other direction": "\u202e".encode(),
    "an isolate": "\u2066".encode(),
    "a blank of no width": "\u200b".encode(),
    "a word joiner": "\u2060".encode(),
    "five marks on one letter": ("\u0301" * 5).encode(),
    "a tag": "\U000e0041".encode(),
}
"""What must not be among the bytes that the cockpit writes."""
