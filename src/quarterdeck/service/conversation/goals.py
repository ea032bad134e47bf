"""The goal of a chat (specification, operation 6). The engine keeps it and works towards it."""

from uuid import UUID

from quarterdeck.service.context import ServiceContext
from quarterdeck.service.conversation.places import require_chat
from quarterdeck.service.errors import ApiError
from quarterdeck.service.fleet.fleet import Fleet
from quarterdeck.service.records.workspaces import WorkspaceRow
from quarterdeck.wire.engine_chats import ChangeGoal
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.goals import ChatGoal, UpdateGoal


async def change_goal(
    context: ServiceContext, fleet: Fleet, row: WorkspaceRow, chat_id: UUID, body: UpdateGoal
) -> ChatGoal | None:
    """Sets, pauses or resumes the goal; None on chats whose agent has no goals.

    Raises:
        ApiError: INVALID_REQUEST without any field, NOT_FOUND, WORKSPACE_NOT_ACTIVE, CONFLICT when
            there is no goal to change.
    """
    if not body.model_dump(exclude_none=True):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "Say what to change.",
            "objective, status or token_budget: at least one",
        )
    if body.objective is not None and not body.objective.strip():
        raise ApiError(ErrorCode.INVALID_REQUEST, "A goal needs an objective.", "objective: empty")
    await require_chat(context, row, chat_id)
    asked = ChangeGoal(chat_id=chat_id, **body.model_dump())
    changed = await fleet.of(row.id).change(row, lambda link: link.chat_goal(asked))
    return changed.goal and changed.goal.as_goal()
