"""The five states of a workspace (specification, States and transitions), and where it came from."""

from enum import StrEnum


class WorkspaceStatus(StrEnum):
    """States that a replica's `status` can name; a newer service may name others."""

    ACTIVE = "active"
    PREPARING = "preparing"
    SLEEPING = "sleeping"
    ARCHIVED = "archived"
    ERROR = "error"


class WorkspaceSource(StrEnum):
    """Where a replica can be made; a newer service may name others."""

    API = "api"
    DASHBOARD = "dashboard"
    CHATAPP = "chatapp"
    TRACKER = "tracker"
    HOST_A = "host-a"
    HOST_B = "host-b"
    AUTOMATION = "automation"
