"""What the engine and an agent say to each other about a goal, in words."""

import re

from quarterdeck.engine.last_words import spoken
from quarterdeck.wire.goals import EventGoal, GoalStatus
from quarterdeck.wire.history import AgentEvent, AgentEventType

KEPT_CHARACTERS = 400
_SAID = re.compile(r"^\W*GOAL:\W*(complete|blocked)\b", re.IGNORECASE)
_RULE = (
    "When the goal is reached and you have checked it, end your message with a line that says "
    "`GOAL: complete`. When you cannot go on without a person, say what you need and end with a "
    "line that says `GOAL: blocked`. Otherwise you are asked to go on after this turn."
)


def asked_with(objective: str) -> str:
    """The message that sets a goal, as the agent gets it."""
    return f"{objective}\n\nThis is your goal; work until it is reached. {_RULE}"


def next_turn(goal: EventGoal) -> str:
    """The message of a further turn."""
    budget = ""
    if goal.token_budget is not None:
        budget = f"\n\nUsed so far: {goal.tokens_used} of {goal.token_budget} tokens."
    return f"Go on towards the goal.\n\n{goal.objective}{budget}\n\n{_RULE}"


def go_on(goal: EventGoal) -> str:
    """The same for an agent that knows its goal and how to end it."""
    return f"Go on towards the goal.\n\n{goal.objective}"


class FinalLine:
    """Follows a turn's events and keeps the end of the agent's newest message."""

    def __init__(self) -> None:
        self._tail = ""

    def hear(self, event: AgentEvent) -> None:
        if event.type != AgentEventType.SESSION_UPDATE:
            return
        text = spoken(event)
        if text is not None:
            self._tail = (self._tail + text)[-KEPT_CHARACTERS:]
        elif event.payload.get("sessionUpdate") == "tool_call":
            self._tail = ""  # it went on after what it said

    @property
    def status(self) -> GoalStatus | None:
        """What the last line says of the goal."""
        lines = self._tail.strip().splitlines()
        found = _SAID.match(lines[-1]) if lines else None
        return GoalStatus(found[1].lower()) if found else None
