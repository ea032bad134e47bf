"""What agents do otherwise than their protocol says, as data. The driver makes up for it."""

from pydantic import BaseModel, ConfigDict


class Traps(BaseModel):
    """The `traps` of one agent in `presets.toml`; none when left out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    stdio_mcp_arguments: tuple[str, ...] = ()
    """It takes tool servers over stdio at start alone; {file} is a file that lists them."""
    error_prefix: str | None = None
    """It tells a model's error as the last words of a turn that ended well; they begin so."""
    usage_adds_up: bool = False
    """It tells what the session has used since the agent's start, not what the turn has."""
    takes_any_model: bool = False
    """It lists no models, and takes any by `session/set_model`."""
    todo_tool: str | None = None
    """It plans with a tool of this name and tells no plan."""
    reopens_next_minute: bool = False
    """It loses a session that is reopened in the clock's minute in which it was made."""
    session_files: str | None = None
    """Where it keeps sessions below the home directory, {session} being the first eight characters
    of the id. It makes another file each time that it reopens one, which stays empty, and at its
    next start throws away a session that has an empty file."""
    tells_history_late: bool = False
    """It answers a load before it has told the session's history, and does not say where that ends."""
