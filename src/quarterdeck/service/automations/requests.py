"""What an automation asks for when it runs, and in whose name."""

import re
import secrets
from typing import Any
from uuid import UUID

from sqlalchemy import RowMapping

from quarterdeck.service.auth import Caller, CallerKind
from quarterdeck.wire.replicas import CreateReplica, ReplicaConfig

NAME_LENGTH = 60
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.]+")


def caller_for(automation: RowMapping) -> Caller:
    """In whose name an automation acts: a personal one in its user's, else in nobody's."""
    kind = CallerKind.ORGANIZATION_KEY if automation["user_id"] is None else CallerKind.PERSONAL_KEY
    return Caller(automation["organization_id"], automation["user_id"], kind)


def replica_for(automation: RowMapping, text: str) -> CreateReplica:
    """The replica of a run with its first message."""
    minutes = automation["workspace_auto_stop_minutes"]
    return CreateReplica(
        name=_name(automation["name"]),
        environment_id=UUID(automation["environment_id"]),
        message=text,
        coding_agent=automation["agent_provider"],
        lifecycle_policy=automation["workspace_lifecycle_policy"],
        config=None if minutes is None else ReplicaConfig(auto_stop_minutes=minutes),
        size=automation["workspace_size"],
        **modes_of(automation),
    )


def modes_of(automation: RowMapping) -> dict[str, Any]:
    """How a message of an automation is to be worked on."""
    return {
        "model": automation["model"],
        "plan_mode": automation["plan_mode"] or None,
        "goal_mode": automation["goal_mode"],
        "fast_mode": automation["fast_mode"],
        "thinking_level": automation["thinking_level"],
    }


def _name(automation: str) -> str:
    readable = _NOT_IN_NAMES.sub("-", automation).strip("-")[:NAME_LENGTH] or "run"
    return f"{readable}-{secrets.token_hex(4)}"
