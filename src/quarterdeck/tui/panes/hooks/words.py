"""What the hooks' pane says."""

from quarterdeck.store.hook_runs import HookRun, said_name
from quarterdeck.store.hooks import LiveHook
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.transcript.words import duration_text
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.tui.reading.row_list import Row
from quarterdeck.tui.text import one_line
from quarterdeck.tui.transcript_view.lines import Line, Role, Span
from quarterdeck.wire.replicas import WorkspaceStatus

LIVE = "live"
"""The key of the row of what runs now."""
NONE = (
    "No hook has run in it.\n\n"
    "Hooks come from its environments (key e in the list), and from\n"
    ".quarterdeck/hooks/warm.sh and start.sh in its repositories."
)


def state_words(state: ReplicaState) -> tuple[str, bool]:
    """Why the replica does not work at this moment, and whether it failed; empty when it does."""
    running = state.hooks.running
    match state.status:
        case WorkspaceStatus.ERROR:
            reason = state.record.error or state.hooks.failure or "The service gave no reason."
            return f"✗ failed: {reason} · " + keyed("{replica.wake} tries again"), True
        case WorkspaceStatus.PREPARING if running is not None:
            return f"◌ preparing: the hook {said_name(running.name)} runs", False
        case WorkspaceStatus.PREPARING:
            return "◌ preparing: the workspace is made and its engine started", False
        case _:
            return "", False


def live_row(hook: LiveHook) -> Row:
    """The row of what runs now."""
    since = f"since {hook.begun_at.astimezone():%H:%M:%S}"
    words = (Span(" ● ", Role.WORKING), Span(one_line(said_name(hook.name))))
    return Row(LIVE, words, (Span(f"running {since}", Role.WORKING),))


def run_row(run: HookRun) -> Row:
    """The row of one that ended."""
    sign = Span(" ✗ ", Role.FAILED) if run.failed else Span(" ✓ ", Role.DONE)
    words: Line = (sign, Span(f"{run.kind:<6}", Role.DIM), Span(one_line(said_name(run.name))))
    code = Span(_ended(run), Role.FAILED if run.failed else Role.DIM)
    took = "" if run.seconds is None else f"{duration_text(run.seconds):>9}"
    at = f"  {run.executed_at.astimezone():%d %b %H:%M}"
    return Row(run.key, words, (code, Span(f"{took}{at}", Role.DIM)))


def _ended(run: HookRun) -> str:
    if run.timed_out:
        return "took too long"
    return f"exit {run.exit_code}"


def run_title(run: HookRun) -> str:
    """The title over what one printed."""
    return f"{run.kind} hook {said_name(run.name)}"


def run_facts(run: HookRun) -> str:
    """How it ended, for the title's right."""
    took = "" if run.seconds is None else f"  {duration_text(run.seconds)}"
    return f"{_ended(run)}{took}"


def output_words(run: HookRun) -> str:
    """What must be known of its output."""
    return f"The first {run.left_out:,} characters were not kept." if run.left_out else ""


def live_words(hook: LiveHook) -> str:
    """What must be known of the output of what runs now."""
    if hook.cut:
        return "It prints more than is shown while it runs: the log has the end."
    if not hook.whole:
        return "What it printed before this cockpit watched is in its log, once it has ended."
    return ""
