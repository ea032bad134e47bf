"""Filter for the output of a program that is shown in the user's own terminal.

Programs in a sandbox are not trusted, and a terminal does more than draw: it gives the clipboard
away, reads files for pictures, types answers to queries, and keeps what it is set to. Only known
sequences that draw, or set a mode that `RESET` ends, are passed on; everything else is removed.
"""

import codecs
import re

RESET = (
    b"\x1b7"  # leaving a screen that was not entered moves the cursor to its last saved position
    b"\x1b[?1000;1002;1003;1004;1006;1015;2004;2026l"  # mouse, focus, paste, synchronized output
    b"\x1b[?1049l"  # alternate screen
    b"\x1b[<u\x1b[>4;0m"  # keyboard protocols of programs
    b"\x1b[?1l\x1b>"  # cursor and number keys
    b"\x1b[?69l"  # margins
    b"\x1b[4l"  # insert mode
    b"\x1b7\x1b[r\x1b8"  # scroll region, which moves the cursor
    b"\x1b(B\x1b)B\x0f"  # character set
    b"\x1b[?12l\x1b[?7;25h\x1b[0 q\x1b[0m"  # blinking, wrapping, cursor, colors
)
"""Ends every mode that the filter lets a program set."""

_LONGEST_PARAMETERS = 128
"""Characters of a sequence; a longer one is broken off, and the rest is text."""

_MODE = "(?:1|7|12|25|47|69|1000|1002|1003|1004|1006|1015|1047|1048|1049|2004|2026)"
_SAFE = (
    r"\["
    r"(?:"
    r"[0-9;:]{0,80}+m"  # colors
    r"|[0-9]{0,5}[ABCDEFGIZ`ade@LMPSTX]"  # cursor, insert, delete, scroll
    r"|[0-9]{0,3}b"  # repeat
    r"|[0-9]{0,5}(?:;[0-9]{0,5})?[Hfr]"  # cursor, scroll region
    r"|\??[0-2]?[JK]"  # erase, but not the history
    r"|u|[0-9]{0,5}(?:;[0-9]{0,5})?s"  # save and restore the cursor; margins
    r"|[0-9;]{0,40}\$[xz]"  # fill and erase rectangles
    r"|[0-6]?\x20q"  # shape of the cursor
    r"|4[hl]"  # insert mode
    rf"|\?{_MODE}(?:;{_MODE}){{0,15}}[hl]"
    r"|>4(?:;[0-2])?m"  # modified keys
    r")"
    r"|[78DEM=>]"  # cursor, scrolling, number keys
    r"|[()][0AB]"  # character sets
)
_QUERY = r"\[(?:6n|0?c)"
"""Cursor position and kind of terminal: some programs wait for the answers, which are numbers."""

_CONTROLS = r"\x00-\x06\x0b\x0c\x10-\x1a\x1c-\x1f\x7f-\x9f"
_SEQUENCE = (
    "(?:"
    rf"\[[0-?]{{0,{_LONGEST_PARAMETERS}}}+[ -/]{{0,4}}+[@-~]?"
    r"|[\]PX^_][^\x07\x18\x1a\x1b\x9c]*+[\x07\x18\x1a\x9c]?"  # strings; an escape ends them, too
    r"|[ -/]{0,4}+[0-~]?"
    r")"
)
_MORE = rf"(?:[{_CONTROLS}]++|\x1b(?!{_SAFE}|{_QUERY}){_SEQUENCE})*+"
_REMOVED = re.compile(  # begins with a set of characters, for which `re` searches fast
    rf"[{_CONTROLS}\x1b](?:(?<!\x1b){_MORE}|(?<=\x1b)(?!{_SAFE})(?:{_QUERY}|{_SEQUENCE}{_MORE}))"
)
_UNFINISHED = re.compile(rf"\x1b(?:\[[0-?]{{0,{_LONGEST_PARAMETERS}}}+[ -/]{{0,4}}|[ -/]{{0,4}})")
_OPEN_STRING = re.compile(r"\x1b[\]PX^_][^\x07\x18\x1a\x1b\x9c]*+")
_STRING_END = re.compile(r"[\x07\x18\x1a\x9c]|(?=\x1b)")


class TerminalFilter:
    """Filters one stream of output, which may be cut at any byte.

    With `answers` the terminal may be asked for its cursor position and kind, once each until the
    user or the terminal has typed something: so hardly an answer is left when the stream ends, which
    a shell would then read. Replayed output must not ask, as nobody waits for the answers.
    """

    def __init__(self, *, answers: bool) -> None:
        self.answers = answers
        """Whether somebody waits for the answers of the terminal."""
        self._asked: set[str] = set()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self._in_string = False

    def note_input(self) -> None:
        """Note that something was typed, which may be an answer of the terminal."""
        self._asked.clear()

    def filter(self, data: bytes) -> bytes:
        """Return what of `data` only draws; a sequence at the end that is not complete follows later."""
        text, self._held = self._held + self._decoder.decode(data), ""
        if self._in_string:
            end = _STRING_END.search(text)
            if end is None:
                return b""
            self._in_string = False
            text = text[end.end() :]
        last = text.rfind("\x1b")  # nothing extends over an escape character
        if last >= 0:
            if _OPEN_STRING.fullmatch(text, last):
                self._in_string = True
                text = text[:last]
            elif _UNFINISHED.fullmatch(text, last):
                text, self._held = text[:last], text[last:]
        return _REMOVED.sub(self._replace, text).encode()

    def _replace(self, match: re.Match[str]) -> str:
        query = match[0]
        if not self.answers or query[-1] not in "nc" or not _IS_QUERY.fullmatch(query):
            return ""
        if query[-1] in self._asked:
            return ""
        self._asked.add(query[-1])
        return query


_IS_QUERY = re.compile(rf"\x1b{_QUERY}")
