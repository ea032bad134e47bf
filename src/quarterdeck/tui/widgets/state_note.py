"""Why a replica cannot work at this moment, and what to do: right above the composer."""

from rich.text import Text
from textual.widgets import Static

from quarterdeck.store.hook_runs import said_name
from quarterdeck.store.hooks import LiveHook
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.transcript.clean import clean, one_line
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.wire.replicas import WorkspaceStatus

FAILED_STEP = (
    "{replica.wake} tries again (from the composer: {composer.transcript}, then {replica.wake}); "
    "{replica.delete} deletes it."
)
PREPARING = (
    "Preparing: the repository is cloned and the engine started. What you send waits for it."
)
LAST_LINES = 4
"""Lines of a running hook's output that are seen from the chat; its tab has all of them."""


class StateNote(Static):
    """Absent while the replica is active or at rest."""

    DEFAULT_CSS = """
    StateNote {
        display: none;
        height: auto;
        max-height: 50%;
        margin: 0 1;
        padding: 0 1;
        color: $text-muted;
        border: round $panel-lighten-2;
        &.failed { color: $foreground; border: round $error; border-title-color: $text-error; }
    }
    """

    def __init__(self) -> None:
        super().__init__(markup=False)

    def show(self, state: ReplicaState) -> None:
        """Shows the state of a replica."""
        failed = state.status == WorkspaceStatus.ERROR
        words = _words(state)
        self.display = bool(words)
        self.set_class(failed, "failed")
        self.border_title = "✗ failed" if failed else "◌ preparing"
        self.update(Text(words))


def _words(state: ReplicaState) -> str:
    match state.status:
        case WorkspaceStatus.ERROR:
            reason = clean(state.record.error or "The service gave no reason.").strip()
            return f"{reason}\n{keyed(FAILED_STEP)}"
        case WorkspaceStatus.PREPARING:
            return "\n".join((PREPARING, *_hook_lines(state.hooks.running)))
        case _:
            return ""


def _hook_lines(hook: LiveHook | None) -> list[str]:
    if hook is None:
        return []
    said = [clean(line) for line in hook.last_lines(LAST_LINES)]
    return [f"The hook {one_line(said_name(hook.name))} runs:", *said]
