"""The slash commands of a chat: ours, and those that its agent told."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast
from uuid import UUID

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.conversation.places import known_chat
from quarterdeck.service.records.commands import offered_commands
from quarterdeck.service.records.workspaces import WorkspaceRow
from quarterdeck.wire.agents import Agent
from quarterdeck.wire.chats import SlashCommand


async def slash_commands(
    context: ServiceContext, row: WorkspaceRow, chat_id: UUID
) -> list[SlashCommand]:
    """Ours first; an agent's command of the same name is ours.

    Raises:
        ApiError: NOT_FOUND.
    """
    chat, offered = await context.database.read(
        lambda c: (known_chat(c, row.id, chat_id), offered_commands(c, str(chat_id)))
    )
    agents = await asyncio.to_thread(context.agents)
    ours = [one for one in _ours(agents) if chat.provider in one.providers]
    taken = {one.command for one in ours}
    theirs = [command for one in offered if (command := _theirs(one, chat.provider))]
    return [*ours, *(one for one in theirs if one.command not in taken)]


def _ours(agents: Sequence[Agent]) -> list[SlashCommand]:
    return [
        SlashCommand(
            command="/plan",
            description="Plan, and change nothing.",
            argument_hint="what to plan",
            providers=[agent.id for agent in agents if agent.supports_plan],
        ),
        SlashCommand(
            command="/goal",
            description="Work towards a goal until it is reached.",
            argument_hint="the goal",
            providers=[agent.id for agent in agents if agent.supports_goal],
        ),
        SlashCommand(
            command="/fast",
            description="Answer fast.",
            argument_hint="message",
            providers=[agent.id for agent in agents],
        ),
    ]


def _theirs(told: dict[str, Any], provider: str) -> SlashCommand | None:
    """An agent's command; None for what is none: agents are not checked when they tell it."""
    name, description, given = told.get("name"), told.get("description"), told.get("input")
    if not isinstance(name, str) or not name.strip("/"):
        return None
    hint = cast("dict[str, Any]", given).get("hint") if isinstance(given, dict) else None
    return SlashCommand(
        command=f"/{name.lstrip('/')}",
        description=description if isinstance(description, str) else "",
        argument_hint=hint if isinstance(hint, str) else None,
        providers=[provider],
    )
