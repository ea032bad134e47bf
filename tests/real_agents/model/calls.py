"""What steps mean in the agents' own tools, as far as agents agree."""

from collections.abc import Collection

from tests.real_agents.model.dialect import Body
from tests.real_agents.model.script import CALLS, Step


def parts(text: str, sign: str) -> list[str]:
    """The pieces of a text between signs."""
    return [part.strip() for part in text.split(sign) if part.strip()]


def written_plan(text: str) -> str:
    """A plan where the agent has no tool for it."""
    return "\n".join(f"- {one}" for one in parts(text, ";"))


def first(tools: Collection[str], *names: str) -> str | None:
    """The first of the names that is a tool."""
    return next((name for name in names if name in tools), None)


def named(text: str) -> tuple[str, str]:
    """`NAME JSON` as a tool's name and its arguments."""
    name, _, arguments = text.partition(" ")
    return name, arguments or "{}"


def of_server(text: str, tools: Collection[str]) -> tuple[str, str]:
    """`SERVER TOOL JSON` as the tool's name, however the agent joins the two, and its arguments."""
    server, tool, arguments = (*text.split(" ", 2), "{}")[:3]
    fitting = (name for name in tools if server in name and name.endswith(tool))
    return next(fitting, f"mcp__{server}__{tool}"), arguments


def question(text: str) -> Body:
    """`QUESTION | A | B` as most agents' tools for questions take it."""
    asked, *options = parts(text, "|")
    told = [{"label": one, "description": one} for one in options]
    return {"question": asked, "header": "Question", "options": told, "multiSelect": False}


def is_call(step: Step, tools: Collection[str], planners: Collection[str]) -> bool:
    """Whether a step is a call, where these tools are offered and those are for plans."""
    return step.kind in CALLS or (step.kind == "plan" and first(tools, *planners) is not None)
