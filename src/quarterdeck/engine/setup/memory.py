"""Facts from the journal about earlier boots: finished warm hooks, and whether it was claimed.

#hook       a warm hook that succeeded, written together with its log
#warmed     all of them
#claimed    the workspace left its pool
#asleep     the engine ended because it was unused, and #awake its next start
"""

from quarterdeck.engine.journal import JournalNote, note, payload_of_line

_HOOK, _WARMED, _CLAIMED = "hook", "warmed", "claimed"
_ASLEEP, _AWAKE = "asleep", "awake"


class SetupMemory:
    """Give `visit` to the journal; the running boot updates it."""

    def __init__(self) -> None:
        self.done: set[str] = set()
        self.warmed = False
        self.claimed = False
        self.asleep = False

    def visit(self, type: str, line: bytes) -> None:
        """Read one line of the journal."""
        match type:
            case "#hook":
                self.done.add(payload_of_line(line)["name"])
            case "#warmed":
                self.warmed = True
            case "#claimed":
                self.claimed = True
            case "#asleep" | "#awake":
                self.asleep = type == "#asleep"
            case _:
                pass


def hook_done(name: str) -> JournalNote:
    """Return the note of a warm hook that succeeded."""
    return note(_HOOK, {"name": name})


def all_warmed() -> JournalNote:
    """Return the note that all warm hooks succeeded."""
    return note(_WARMED, {})


def was_claimed() -> JournalNote:
    """Return the note that the workspace has its owner."""
    return note(_CLAIMED, {})


def rests(asleep: bool) -> JournalNote:
    """Return the note that the engine goes to sleep, or is awake again."""
    return note(_ASLEEP if asleep else _AWAKE, {})
