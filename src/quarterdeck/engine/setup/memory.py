"""What the journal remembers of earlier boots: which warm hooks are done, whether it was claimed.

#hook       a warm hook that succeeded, written together with its log
#warmed     all of them
#claimed    the workspace left its pool
"""

from quarterdeck.engine.drafts import Note, note, payload_of_line

_HOOK, _WARMED, _CLAIMED = "hook", "warmed", "claimed"


class SetupMemory:
    """Give `visit` to the journal; the rest is kept up by the boot that runs."""

    def __init__(self) -> None:
        self.done: set[str] = set()
        self.warmed = False
        self.claimed = False

    def visit(self, type: str, line: bytes) -> None:
        """Takes one line of the journal."""
        match type:
            case "#hook":
                self.done.add(payload_of_line(line)["name"])
            case "#warmed":
                self.warmed = True
            case "#claimed":
                self.claimed = True
            case _:
                pass


def hook_done(name: str) -> Note:
    """The note of a warm hook that never runs again."""
    return note(_HOOK, {"name": name})


def all_warmed() -> Note:
    """The note that no warm hook ever runs again."""
    return note(_WARMED, {})


def was_claimed() -> Note:
    """The note that the workspace has its owner."""
    return note(_CLAIMED, {})
