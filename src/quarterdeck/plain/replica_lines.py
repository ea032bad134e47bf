"""Replicas, their states and their changes as lines."""

from collections.abc import Iterator, Sequence

from quarterdeck.plain.transcript_lines import counts_text, labelled
from quarterdeck.store.changes_diff import FileChange, RepositoryChange
from quarterdeck.store.chats import ChatState
from quarterdeck.store.notices import SENTENCES
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.status import NEEDS_YOU, Attention, threads_words
from quarterdeck.transcript.text import name_line, one_line
from quarterdeck.wire.git import PullRequestDetail
from quarterdeck.wire.replicas import WorkspaceStatus

STATES = SENTENCES | {
    Attention.WORKING: "is working",
    Attention.PREPARING: "is being prepared",
    Attention.IDLE: "is idle",
    Attention.SLEEPING: "is asleep",
    Attention.ARCHIVED: "is archived",
}
"""The end of the sentence that begins with the name."""

MOST_DIFF = 400
"""Lines of a file's diff that are printed."""


def state_line(state: ReplicaState) -> str:
    """Return what a replica is doing, with the reason of a failure."""
    why = ""
    if state.status == WorkspaceStatus.ERROR:
        why = (
            f": {one_line(state.record.error or 'it could not be started')} Type wake to try again"
        )
    return f"{name_line(state.full_name)} {STATES[state.attention]}{why}."


def list_line(number: int, state: ReplicaState) -> str:
    """Return a replica as a line of the list."""
    names = [one_line(repository.name) for repository in state.record.repositories]
    facts = [", ".join(names)] if names else []
    if any(state.changed_lines):
        facts.append(counts_text(*state.changed_lines))
    about = f" {'; '.join(facts)}." if facts else ""
    return f"{number}. {state_line(state)}{about}"


def summary_line(states: Sequence[ReplicaState]) -> str:
    """Return how many replicas there are, which need the person, and which are done and not seen."""
    waiting = [name_line(state.full_name) for state in states if state.attention in NEEDS_YOU]
    done = [
        name_line(state.full_name) for state in states if state.attention == Attention.DONE_UNSEEN
    ]
    if not states:
        return "No replicas yet. Type new to create one."
    total = f"{len(states)} replica{'' if len(states) == 1 else 's'}"
    ended = f" Done: {', '.join(done)}." if done else ""
    if not waiting:
        return f"{total}, none needs you.{ended}"
    needs = "needs" if len(waiting) == 1 else "need"
    return f"{total}, {len(waiting)} {needs} you: {', '.join(waiting)}.{ended}"


def chat_name(chat: ChatState, agent: str) -> str:
    """Return the title of a chat with the name of its agent."""
    title = one_line(chat.record.title or "")
    return f"{title} ({agent})" if title else agent


def chat_line(number: int, chat: ChatState, agent: str) -> str:
    """Return a chat as a line of the list of chats."""
    record = chat.record
    doing = "asks you something" if record.awaiting_input else "is working"
    state = f" {doing}" if record.awaiting_input or record.processing else " is idle"
    return f"{number}. {chat_name(chat, agent)}{state}."


def change_lines(repositories: list[RepositoryChange]) -> Iterator[str]:
    """Yield the changed files of all repositories, numbered."""
    number = 0
    for repository in repositories:
        files = repository.files or []
        count = f"{len(files)} file{'' if len(files) == 1 else 's'}"
        branch = f", branch {one_line(repository.branch)}" if repository.branch else ""
        lines = counts_text(repository.added, repository.removed)
        yield f"{one_line(repository.name)}{branch}: {count} changed, {lines}."
        for file in files:
            number += 1
            yield f"{number}. {file_line(file)}"
    if number:
        yield "Type changes and a number to read the diff of a file."


def file_line(file: FileChange) -> str:
    """Return the change of a file in one line."""
    what = "binary" if file.binary else counts_text(file.added, file.removed)
    return f"{one_line(file.path)}, {file.kind}: {what}."


def diff_lines(file: FileChange) -> list[str]:
    """Return the diff of a file, each hunk with the line that it begins at."""
    lines: list[str] = []
    for hunk in file.hunks:
        section = f", {one_line(hunk.section)}" if hunk.section else ""
        lines += [f"At line {hunk.new_start}{section}:", *map(labelled, hunk.lines)]
    if len(lines) > MOST_DIFF:
        lines = [*lines[:MOST_DIFF], f"{len(lines) - MOST_DIFF} more lines are left out."]
    return [file_line(file), *lines]


def pull_lines(pull: PullRequestDetail) -> list[str]:
    """Return how a pull request stands, its failed checks, and its address."""
    facts = [pull.state, *(["draft"] if pull.draft else [])]
    facts += ["conflicts with the base branch"] if pull.mergeable is False else []
    if pull.review is not None:
        facts.append(
            "review required" if pull.review == "required" else pull.review.replace("_", " ")
        )
    facts += filter(None, [threads_words(pull.unresolved_threads)])
    if pull.checks.state is not None:
        facts.append(f"checks {pull.checks.state}")
    branches = f"{one_line(pull.head)} into {one_line(pull.base)}"
    return [
        f"Pull request {pull.number}: {one_line(pull.title)}",
        f"{branches}: {', '.join(facts)}.",
        *(
            f"Failed: {one_line(check.name)} {one_line(check.url or '')}".rstrip()
            for check in pull.checks.failed
        ),
        one_line(pull.url),
    ]
