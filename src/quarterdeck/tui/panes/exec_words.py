"""What is said of commands."""

import signal

from quarterdeck.store.exec_runs import SECONDS, Run
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.tui.actions.sentences import keyed
from quarterdeck.wire.replicas import WorkspaceStatus


def nothing_yet_words() -> str:
    """Before the first command."""
    where = keyed("longer work belongs in a terminal ({tab.terminal}).")
    return f"One command at a time, at most {SECONDS} seconds; {where}"


def outcome(run: Run) -> tuple[str, bool]:
    """How a command ended, and whether it went well."""
    if run.running:
        return _running(run), True
    took = f" \u00b7 {run.seconds:.1f} s" if run.seconds is not None else ""
    response = run.response
    if response is None:
        return "not run", False
    if response.timed_out:
        return f"stopped after {SECONDS} s", False
    code = response.exit_code
    if code is not None and code < 0:
        return f"{_signal(-code)}{took}", False
    stopped = "interrupted \u00b7 " if run.interrupts else ""
    return f"{stopped}exit {code}{took}", code == 0


def _running(run: Run) -> str:
    if run.interrupts:
        return "being killed" if run.interrupts > 1 else "being interrupted"
    return f"runs since {run.began.astimezone():%H:%M:%S}"


def _signal(number: int) -> str:
    try:
        return f"ended by {signal.Signals(number).name}"
    except ValueError:
        return f"ended by signal {number}"


def resting(state: ReplicaState) -> str:
    """Why no command can be run now; empty when one can."""
    match state.status:
        case WorkspaceStatus.ACTIVE:
            return ""
        case WorkspaceStatus.PREPARING:
            return "It is getting ready: commands run once it is active."
        case WorkspaceStatus.SLEEPING:
            return keyed("It sleeps; commands run once it is awake ({replica.wake} in the list).")
        case WorkspaceStatus.ARCHIVED:
            return keyed(
                "It is archived; commands run once it is restored ({replica.wake} in the list)."
            )
        case _:
            return keyed("It has failed; {replica.wake} in the list tries again.")
