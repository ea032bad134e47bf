"""What the built-in agent says, as Markdown."""

import os
from typing import TYPE_CHECKING

from quarterdeck.agents.builtin.blocks import Block, Parsed
from quarterdeck.agents.builtin.runner import Ran

if TYPE_CHECKING:
    from quarterdeck.agents.port import AgentStatus
    from quarterdeck.wire.own_agents import KnownAgents

_HELP = """\
I am the built-in agent. I have no model, so I cannot answer questions or write code by myself. \
I run the shell blocks of a message in order, in the workspace, and stop at the first command \
that fails. Write one like this:

````
```sh
git status
```
````

In plan mode I list what I would run and run nothing.

"""


def help_text(parsed: Parsed) -> str:
    """The answer to a message without a block that can be run."""
    skipped = ""
    if parsed.skipped:
        languages = ", ".join(sorted(set(parsed.skipped)))
        skipped = f"I did not run the block in `{languages}`: I only run shell blocks.\n\n"
    return skipped + _HELP + _agents()


def planned(blocks: list[Block], directory: str) -> str:
    """What would be run, and that nothing was."""
    steps = "\n\n".join(
        f"{_fence(block)}{block.shell}\n{block.script}{_fence(block)}" for block in blocks
    )
    return (
        f"I would run this in `{directory}`, and stop at the first command that fails:\n\n{steps}"
        "\n\nNothing was run. Send the message without plan mode to run it."
    )


def done(blocks: list[Block], runs: list[Ran], skipped: list[str], changes: str) -> str:
    """How the blocks went and what changed."""
    last = runs[-1]
    lines: list[str] = []
    if last.exit_code != 0:
        lines.append(f"`{blocks[len(runs) - 1].title}` failed with exit code {last.exit_code}.")
    if left := len(blocks) - len(runs):
        lines.append(f"{left} {_noun(left)} after it {'was' if left == 1 else 'were'} not run.")
    if skipped:
        lines.append(f"Not run, because it is no shell block: `{', '.join(sorted(set(skipped)))}`.")
    if last.exit_code == 0:
        lines.append(f"{len(runs)} {_noun(len(runs))} ran without an error.")
    return " ".join(lines) + "\n\n" + changes


def _agents() -> str:
    # Imported here: only this answer needs it, and every start would pay 0.15 s for it.
    from quarterdeck.agents.catalog import default_catalog

    known = _known()
    catalog = default_catalog(own=known.own, keyed=known.keyed)
    others = [status for status in catalog.statuses() if status.id != "builtin"]
    return "Other agents here:\n\n" + "\n".join(map(_agent, others))


def _known() -> "KnownAgents":
    """What the engine told of agents; nothing when it told nothing that can be read."""
    from pydantic import ValidationError

    from quarterdeck.wire.own_agents import AGENTS_VARIABLE, KnownAgents

    try:
        return KnownAgents.model_validate_json(os.environ.get(AGENTS_VARIABLE, "{}"))
    except ValidationError:
        return KnownAgents()


def _agent(status: "AgentStatus") -> str:
    version = f" {status.version}" if status.version else ""
    return f"- **{status.name}**{version} (`{status.id}`): {status.reason or 'available'}"


def _noun(count: int) -> str:
    return "block" if count == 1 else "blocks"


def _fence(block: Block) -> str:
    """A fence that nothing in the script closes."""
    fence = "```"
    while fence in block.script:
        fence += "`"
    return fence
