"""What tells programs inside a workspace how to reach the service."""

from quarterdeck.service.records.workspaces import WorkspaceRow
from quarterdeck.wire.inside import SECRET_VARIABLE, URL_VARIABLE, WORKSPACE_VARIABLE


def way_out(row: WorkspaceRow, socket: str | None) -> dict[str, str]:
    """Variables for all that runs in a workspace; none when its sandbox has no way out."""
    if socket is None:
        return {}
    return {
        URL_VARIABLE: f"unix:{socket}",
        WORKSPACE_VARIABLE: row.id,
        SECRET_VARIABLE: row.engine_secret,
    }
