"""Sentences that name keys, as the keys are now."""

import re
from functools import cache

from quarterdeck.tui.actions import ACTIONS, Action
from quarterdeck.tui.actions.current import shown_key

_ID = re.compile(r"\{([a-z]+[.-][a-z0-9._-]+)\}")
PALETTE = "the palette"
"""Where an action that has no key is found."""


@cache
def action_named(action_id: str) -> Action:
    """The action of an id.

    Raises:
        KeyError: there is none.
    """
    for actions in ACTIONS.values():
        for action in actions:
            if action.id == action_id:
                return action
    raise KeyError(action_id)


def keyed(sentence: str) -> str:
    """Puts the keys of actions into a sentence: `{replica.wake} wakes it.`

    To be asked when the sentence is shown, never before: a person may have other keys.
    """
    return _ID.sub(lambda found: shown_key(action_named(found[1])) or PALETTE, sentence)


def keyed_briefly(sentence: str) -> str:
    """The same where there is little room."""
    return keyed(sentence).replace("escape", "esc")
