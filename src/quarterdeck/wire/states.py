"""The five states of a workspace (specification, States and transitions)."""

from enum import StrEnum


class WorkspaceStatus(StrEnum):
    """States that a replica's `status` can name; a newer service may name others."""

    ACTIVE = "active"
    PREPARING = "preparing"
    SLEEPING = "sleeping"
    ARCHIVED = "archived"
    ERROR = "error"
