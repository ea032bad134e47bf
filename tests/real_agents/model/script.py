"""What the model does, written in the user's own message: one step a line.

    say TEXT                 answers with a text
    think TEXT               thinks aloud
    stream N                 answers in N small pieces: `0 1 2 ...`
    shell COMMAND            calls the agent's own shell tool
    mcp SERVER TOOL JSON     calls a tool of an MCP server
    tool NAME JSON           calls a tool of the agent by its name
    ask QUESTION | A | B     asks the person, where the agent has a tool for it
    plan A; B                plans, with the agent's tool or in its way of writing plans
    goal complete|blocked    ends the goal, where the agent has a tool for it
    slow SECONDS             waits before it goes on
    wait NAME                waits until the test says `release(NAME)`
    fail STATUS TYPE         this request is answered with an HTTP error; of a type, where it matters
    garbage                  sends what is no event of the protocol
    cut                      drops the connection in mid-stream

A step that calls a tool ends the answer; the next request carries its result and goes on behind it.
So the server keeps nothing: the newest text of a user that holds a step is the script, and how many
results of tools follow it says where in it we are. A line may begin with `N:` (only when the script
is told for the Nth time, as an agent's goal is) or `N+:` (from the Nth time on).
Lines that are no step are not looked at, so a script may stand within other words.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

CALLS = frozenset({"shell", "mcp", "tool", "ask", "goal"})
"""Steps that are calls of tools in every dialect; `plan` is one where the agent has a tool."""

_STEP = re.compile(
    r"^\s*(?:(?P<turn>\d+)(?P<on>\+)?:\s*)?"
    r"(?P<kind>say|think|stream|shell|mcp|tool|ask|plan|goal|slow|wait|fail|garbage|cut)"
    r"(?:\s+(?P<text>.*\S))?\s*$"
)
_BARE = frozenset({"garbage", "cut"})


@dataclass(frozen=True)
class Step:
    """One thing that the model does. `turn` is the telling in which it does; 0: in each."""

    kind: str
    text: str = ""
    turn: int = 0
    onwards: bool = False

    def applies(self, telling: int) -> bool:
        return not self.turn or telling == self.turn or (self.onwards and telling > self.turn)


@dataclass(frozen=True)
class Entry:
    """Something in the conversation so far: a user's text, or the result of a tool."""

    text: str
    result: bool = False


SILENT = (Step("say", "Done."),)
"""What the model does when nobody told it anything, or when the script is at its end."""


def read_script(text: str) -> list[Step]:
    """The steps in a text."""
    found = [_STEP.match(line) for line in text.splitlines()]
    return [
        Step(one["kind"], one["text"] or "", int(one["turn"] or 0), bool(one["on"]))
        for one in found
        if one and bool(one["text"]) is not (one["kind"] in _BARE)
    ]


def next_steps(entries: Sequence[Entry], is_call: Callable[[Step], bool]) -> tuple[Step, ...]:
    """What the model does in answer to a conversation, oldest entry first."""
    texts = [(at, read_script(one.text)) for at, one in enumerate(entries) if not one.result]
    scripts = [(at, steps) for at, steps in texts if steps]
    if not scripts:
        return SILENT
    begun, script = scripts[-1]
    telling = sum(1 for _, steps in scripts if steps == script)
    results = sum(1 for one in entries[begun:] if one.result)
    return _after(results, [step for step in script if step.applies(telling)], is_call) or SILENT


def _after(
    results: int, script: Sequence[Step], is_call: Callable[[Step], bool]
) -> tuple[Step, ...]:
    """The steps behind the first `results` calls, up to the next call."""
    answers: list[list[Step]] = [[]]
    for step in script:
        answers[-1].append(step)
        if is_call(step):
            answers.append([])
    return tuple(answers[results]) if results < len(answers) else ()
