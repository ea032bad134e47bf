"""The built-in agent's messages, as Markdown."""

import os
from typing import TYPE_CHECKING

from quarterdeck.agents.builtin.runner import Parsed, Ran, ShellBlock

if TYPE_CHECKING:
    from quarterdeck.agents.port import AgentStatus
    from quarterdeck.wire.agents import KnownAgents

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
    """Return the answer to a message without a shell block."""
    skipped = ""
    if parsed.skipped:
        languages = ", ".join(sorted(set(parsed.skipped)))
        skipped = f"I did not run the block in `{languages}`: I only run shell blocks.\n\n"
    return skipped + _HELP + _agents()


def planned(blocks: list[ShellBlock], directory: str) -> str:
    """Return the blocks that would be run."""
    steps = "\n\n".join(
        f"{_fence(block)}{block.shell}\n{block.script}{_fence(block)}" for block in blocks
    )
    return (
        f"I would run this in `{directory}`, and stop at the first command that fails:\n\n{steps}"
        "\n\nNothing was run. Send the message without plan mode to run it."
    )


def summary(blocks: list[ShellBlock], runs: list[Ran], skipped: list[str], changes: str) -> str:
    """Return the results of the blocks and the changes."""
    last = runs[-1]
    lines: list[str] = []
    if last.exit_code != 0:
        lines.append(f"`{blocks[len(runs) - 1].title}` failed with exit code {last.exit_code}.")
    if left := len(blocks) - len(runs):
        lines.append(f"{left} {_noun(left)} after it {'was' if left == 1 else 'were'} not run.")
    if skipped:
        lines.append(f"Not run: not a shell block: `{', '.join(sorted(set(skipped)))}`.")
    if last.exit_code == 0:
        lines.append(f"{len(runs)} {_noun(len(runs))} ran without an error.")
    return " ".join(lines) + "\n\n" + changes


def _agents() -> str:
    # Imported here: only this answer needs it, and every start would pay 0.15 s for it.
    from quarterdeck.agents.catalog import default_catalog

    agents = _known_agents()
    catalog = default_catalog(own=agents.own, keyed=agents.keyed)
    others = [status for status in catalog.statuses() if status.id != "builtin"]
    return "Other agents here:\n\n" + "\n".join(map(_agent, others))


def _known_agents() -> "KnownAgents":
    """Return the agents given by the engine; none when they cannot be read."""
    from pydantic import ValidationError

    from quarterdeck.wire.agents import AGENTS_VARIABLE, KnownAgents

    try:
        return KnownAgents.model_validate_json(os.environ.get(AGENTS_VARIABLE, "{}"))
    except ValidationError:
        return KnownAgents()


def _agent(status: "AgentStatus") -> str:
    version = f" {status.version}" if status.version else ""
    return f"- **{status.name}**{version} (`{status.id}`): {status.reason or 'available'}"


def _noun(count: int) -> str:
    return "block" if count == 1 else "blocks"


def _fence(block: ShellBlock) -> str:
    """Return a fence that does not occur in the script."""
    fence = "```"
    while fence in block.script:
        fence += "`"
    return fence
