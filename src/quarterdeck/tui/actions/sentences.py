"""Sentences that contain the current keys."""

import re
from functools import cache

from quarterdeck.tui.actions import ACTIONS, Action
from quarterdeck.tui.actions.keys import shown_key

_ID = re.compile(r"\{([a-z]+[.-][a-z0-9._-]+)\}")
PALETTE = "the palette"
"""Where to find an action that has no key."""


@cache
def action_named(action_id: str) -> Action:
    """Return the action with an id.

    Raises:
        KeyError: no such action.
    """
    for actions in ACTIONS.values():
        for action in actions:
            if action.id == action_id:
                return action
    raise KeyError(action_id)


def keyed(sentence: str) -> str:
    """Insert the keys of actions into a sentence, as in `{replica.wake} wakes it`.

    Call this when the sentence is shown, not earlier: a user may have rebound keys.
    """
    return _ID.sub(lambda found: shown_key(action_named(found[1])) or PALETTE, sentence)
