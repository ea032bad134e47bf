"""A line that is being typed: what the terminal echoes, and the lines that are complete.

Only printable characters, backspaces and newlines are echoed: no control sequence, so it works on every
terminal. It knows what is typed so far, which a terminal in line mode keeps to itself: so nothing is printed
into the middle of it.
"""

import re
import unicodedata

BACKSPACES = "\x7f\b"
END, KILL, WORD, REPRINT = "\x04", "\x15", "\x17", "\x12"
_KEY = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)")
"""What a terminal sends for a key without a character, such as an arrow."""
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O)?$")


class LineEditor:
    """Edits one line after the other. `ended`: the person sent the end of input on an empty line."""

    def __init__(self) -> None:
        self.text = ""
        self.ended = False
        self.hidden = False
        """Whether nothing of the line is echoed."""
        self._rest = ""

    def feed(self, data: str) -> tuple[str, list[str]]:
        """Take typed characters; return what to echo, and the lines that are complete."""
        data = self._rest + data
        unfinished = _UNFINISHED.search(data)
        self._rest = unfinished[0] if unfinished else ""
        data = _KEY.sub("", data[: len(data) - len(self._rest)])
        echo: list[str] = []
        lines: list[str] = []
        for character in data.replace("\r\n", "\n"):
            echo.append(self._take(character, lines))
        return "".join(echo), lines

    def _take(self, character: str, lines: list[str]) -> str:
        if character in "\r\n":
            lines.append(self.text)
            self.text = ""
            return "\n"
        if character in BACKSPACES:
            return self._cut(len(self.text) - 1)
        match character:
            case _ if character == KILL:
                return self._cut(0)
            case _ if character == WORD:
                kept = self.text.rstrip()
                return self._cut(kept.rfind(" ") + 1)
            case _ if character == REPRINT:
                return "" if self.hidden else f"\n{self.text}"
            case _ if character == END:
                self.ended = self.ended or not self.text
                return ""
            case "\t":
                return self._add(" ")
            case _:
                return self._add(character) if character.isprintable() else ""

    def _add(self, character: str) -> str:
        self.text += character
        return "" if self.hidden else character

    def _cut(self, length: int) -> str:
        """Cut the line to so many characters; return what erases the others."""
        length = max(0, length)
        while length and unicodedata.combining(self.text[length]):
            length -= 1
        removed, self.text = self.text[length:], self.text[:length]
        return "" if self.hidden else "\b \b" * sum(map(_width, removed))


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
