"""Run a single command in the open replica."""

from quarterdeck.plain.session import CanceledError, Session
from quarterdeck.store.exec_runs import SECONDS
from quarterdeck.transcript.text import clean_output, one_line


async def execute(session: Session, _: str) -> None:
    """Ask for a command, run it, and print its output."""
    replica = session.replica
    if replica is None:
        return
    with session.dialog():
        command = await session.ask(f"Command, at most {SECONDS} seconds long:")
    if not command:
        raise CanceledError
    runs = session.app_state.exec_runs
    run = runs.start(replica.id, command)
    try:
        await session.until(lambda: not run.running)
    finally:
        runs.interrupt(run)  # of one that has ended nothing comes
    if run.response is None:
        session.say(one_line(run.problem))
        return
    if run.response.truncated:
        session.say("Only the end of the output is kept.")
    session.say(*clean_output(run.response.output).splitlines())
    if run.response.timed_out:
        session.say(f"Stopped after {SECONDS} seconds.")
    else:
        session.say(f"Ended with exit status {run.response.exit_code}.")
