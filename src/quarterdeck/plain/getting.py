"""Get work out of the open replica: see its changes, commit, fetch and push them."""

from quarterdeck.plain.replica_lines import change_lines, diff_lines
from quarterdeck.plain.session import CanceledError, Session
from quarterdeck.store.git import GetChanges, local_branch
from quarterdeck.store.review import READABLE
from quarterdeck.transcript.text import one_line
from quarterdeck.wire.git import GitState


async def show_changes(session: Session, rest: str) -> None:
    """Print the changed files, or the diff of one."""
    replica = session.replica
    if replica is None:
        return
    if replica.status not in READABLE:
        session.say("The files cannot be read in this state.")
        return
    review = session.app_state.reviews.of(replica.id)
    if not (rest and review.repositories):
        await review.read()
    if review.problem:
        session.say(one_line(review.problem))
        return
    files = [file for repository in review.repositories for file in repository.files or ()]
    if not files:
        session.say("No changes.")
    elif not rest:
        session.say(*change_lines(review.repositories))
    elif 0 < int(rest) <= len(files):
        session.say(*diff_lines(files[int(rest) - 1]))
    else:
        session.say("There is no such file. Type changes to hear them.")


async def _chosen(session: Session) -> tuple[GetChanges, GitState] | None:
    """Return the operations on the open replica, and the repository that is meant."""
    replica = session.replica
    if replica is None:
        return None
    changes = GetChanges(session.app_state, replica.id, session.here.variables)
    await changes.look()
    found = changes.repositories
    if not found:
        session.say("The replica has no repository.")
        return None
    number = changes.likeliest()
    if len(found) > 1:
        with session.dialog():
            session.say(
                *(f"{at}. {one_line(state.repository)}" for at, state in enumerate(found, 1))
            )
            typed = await session.ask(f"Which repository (Enter for {number + 1}):")
        number = int(typed) - 1 if typed.isdecimal() else number
        if not 0 <= number < len(found):
            raise CanceledError
    return changes, found[number]


async def commit(session: Session, _: str) -> None:
    """Commit everything in a repository of the replica."""
    chosen = await _chosen(session)
    if chosen is None:
        return
    changes, state = chosen
    if not (state.uncommitted and state.uncommitted.files):
        session.say("Everything is committed.")
        return
    with session.dialog():
        message = await session.ask(f"Message (Enter for {one_line(changes.title)}):")
    done = await changes.commit(state, message or changes.title)
    session.say(f"Committed {done.commit.sha[:10]} {one_line(done.commit.title)}.")


async def fetch(session: Session, _: str) -> None:
    """Fetch the branch of a repository into the person's own."""
    chosen = await _chosen(session)
    if chosen is None:
        return
    changes, state = chosen
    if changes.checkout is None:
        session.say(f"{changes.no_checkout}.")
        return
    if not state.branch:
        session.say("No branch is checked out in the replica.")
        return
    if changes.is_foreign(state):
        with session.dialog():
            top = one_line(str(changes.checkout.top))
            answer = await session.ask(f"{top} is another repository. Fetch into it? yes or no:")
        if answer != "yes":
            raise CanceledError
    done = await changes.fetch(state)
    session.say(f"Fetched {one_line(local_branch(state))}, {done[:10]}.{_left(state)}")


async def push(session: Session, _: str) -> None:
    """Push the branch of a repository to its source."""
    chosen = await _chosen(session)
    if chosen is None:
        return
    changes, state = chosen
    done = await changes.push(state)
    branch = one_line(done.branch)
    what = f"Pushed {branch}, {done.commit[:10]}." if done.changed else f"{branch} is up to date."
    session.say(f"{what}{_left(state)}")


def _left(state: GitState) -> str:
    files = state.uncommitted.files if state.uncommitted else 0
    if not files:
        return ""
    stays = "1 file stays" if files == 1 else f"{files} files stay"
    return f" {stays} uncommitted in the replica; commit takes them along."
