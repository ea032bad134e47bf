"""Get work out of the open replica: see its changes, commit, fetch, apply, merge and push them; pull requests."""

from typing import cast, get_args

from quarterdeck.local.checkout import DivergedError
from quarterdeck.plain.replica_lines import change_lines, diff_lines, pull_lines
from quarterdeck.plain.session import CanceledError, Session
from quarterdeck.store.git import GetChanges, has_pull_requests, local_branch
from quarterdeck.store.pull_requests import fix_message, left_out
from quarterdeck.store.review import READABLE
from quarterdeck.transcript.text import one_line
from quarterdeck.wire.git import (
    LONGEST_TITLE,
    GitState,
    MergeMethod,
    OpenPullRequest,
    PullRequestDetail,
)

NO_BRANCH = "No branch is checked out in the replica."
FIX = "fix"
PULL_REQUEST_WORDS = (*get_args(MergeMethod), FIX)
"""What may follow `pr`."""


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
    changes = GetChanges(session.app_state, replica.id, session.app_state.git_variables)
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
    session.say_done(f"Committed {done.commit.sha[:10]} {one_line(done.commit.title)}.")


async def _into_checkout(session: Session, verb: str) -> tuple[GetChanges, GitState, str] | None:
    """Return the repository that is meant, and the directory that takes its work: the person's own."""
    chosen = await _chosen(session)
    if chosen is None:
        return None
    changes, state = chosen
    if changes.checkout is None:
        session.say(f"{changes.no_checkout}.")
        return None
    top = one_line(str(changes.checkout.top))
    if changes.is_foreign(state):
        await session.confirm(f"{top} is another repository. {verb} into it?")
    return changes, state, top


async def fetch(session: Session, _: str) -> None:
    """Fetch the branch of a repository into the person's own."""
    chosen = await _into_checkout(session, "Fetch")
    if chosen is None:
        return
    changes, state, _top = chosen
    if not state.branch:
        session.say(NO_BRANCH)
        return
    try:
        done = await changes.fetch(state)
    except DivergedError as error:
        await session.confirm(f"{one_line(str(error))} Overwrite it?")
        done = await changes.fetch(state, force=True)
    session.say(f"Fetched {one_line(local_branch(state))}, {done[:10]}.{_left(state)}")


async def apply(session: Session, _: str) -> None:
    """Apply all changes to the files of the person's checkout; nothing is committed there."""
    chosen = await _into_checkout(session, "Apply")
    if chosen is None:
        return
    changes, state, top = chosen
    files = await changes.apply(state)
    if not files:
        session.say("Nothing to apply: your checkout already has all changes.")
    else:
        count = "1 file" if len(files) == 1 else f"{len(files)} files"
        session.say(f"Applied to {top}, {count}:", *map(one_line, files))


async def merge(session: Session, _: str) -> None:
    """Fetch the branch and merge it into the one that is checked out here."""
    chosen = await _into_checkout(session, "Merge")
    if chosen is None:
        return
    changes, state, top = chosen
    if not state.branch:
        session.say(NO_BRANCH)
        return
    branch = one_line(local_branch(state))
    done = await changes.merge(state)
    if done is None:
        session.say(f"Already up to date with {branch}.{_left(state)}")
        return
    here = changes.checkout_state.branch if changes.checkout_state else None
    session.say(f"Merged {branch} into {one_line(here or top)}, {done[:10]}.{_left(state)}")


async def push(session: Session, _: str) -> None:
    """Push the branch of a repository to its source."""
    chosen = await _chosen(session)
    if chosen is None:
        return
    changes, state = chosen
    done = await changes.push(state)
    branch = one_line(done.branch)
    if done.changed:
        session.say_done(f"Pushed {branch}, {done.commit[:10]}.", _left(state))
    else:
        session.say(f"{branch} is up to date.{_left(state)}")


async def pull_requests(session: Session, rest: str) -> None:
    """Say how the pull requests of a repository stand; open one, merge it, or have its checks fixed."""
    chosen = await _chosen(session)
    if chosen is None:
        return
    changes, state = chosen
    if not has_pull_requests(changes.replica, state.repository):
        session.say("The source is a directory: fetch or merge, then push from there.")
        return
    known = await changes.pulls.read(changes.replica_id)
    opened = changes.pull_request(state.repository)
    if rest and opened is None:
        session.say("No pull request is open. Type pr to open one.")
    elif rest == FIX and opened is not None:
        await _fix(session, opened)
    elif rest and opened is not None:
        await _merge_pull_request(session, changes, opened, cast("MergeMethod", rest))
    else:
        own = (pull for pull in known if pull.repository == state.repository)
        session.say(*(line for pull in own for line in pull_lines(pull)))
        if opened is None:
            await _open_pull_request(session, changes, state)


async def _open_pull_request(session: Session, changes: GetChanges, state: GitState) -> None:
    if not state.branch:
        session.say(NO_BRANCH)
        return
    await session.confirm("No pull request is open. Push the branch and open one?")
    usual, base = changes.title[:LONGEST_TITLE], state.base_branch or "the base branch"
    with session.dialog():
        title = await session.ask(f"Title (Enter for {one_line(usual)}):")
        body = await session.ask_text("Description (nothing for the titles of the commits)")
        into = await session.ask(f"Base branch (Enter for {one_line(base)}):")
        draft = await session.ask_yes("As a draft?", usual=False)
    wanted = OpenPullRequest(
        repository=state.repository,
        title=title or usual,
        body=body or None,
        base=into or None,
        draft=draft,
    )
    pull = await changes.pulls.create(changes.replica_id, wanted)
    session.say(*pull_lines(pull), *left_out(changes.replica, state.repository, pull))


async def _merge_pull_request(
    session: Session, changes: GetChanges, pull: PullRequestDetail, method: MergeMethod
) -> None:
    if pull.draft:
        session.say("The pull request is a draft.")
        return
    session.say(*pull_lines(pull), *left_out(changes.replica, pull.repository, pull))
    await session.confirm(f"Merge it into {one_line(pull.base)} by {method}?")
    done = await changes.pulls.merge(changes.replica_id, pull, method)
    session.say_done(f"Merged pull request {done.number} into {one_line(done.base)}.")


async def _fix(session: Session, pull: PullRequestDetail) -> None:
    """Send the failed checks to the agent of the open chat."""
    if pull.checks.failed:
        await session.send(fix_message(pull))
    else:
        session.say("No failed checks.")


def _left(state: GitState) -> str:
    files = state.uncommitted.files if state.uncommitted else 0
    if not files:
        return ""
    stays = "1 file stays" if files == 1 else f"{files} files stay"
    return f" {stays} uncommitted in the replica; commit takes them along."
