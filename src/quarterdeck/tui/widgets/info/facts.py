"""A replica as rows of facts. Rows with a key are links; the key is the address."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from uuid import UUID

from quarterdeck.store.chats import ChatState
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.transcript.words import duration_text
from quarterdeck.tui.marks import MARKS
from quarterdeck.tui.reading.row_list import Row
from quarterdeck.tui.text import one_line
from quarterdeck.tui.transcript_view.inline import safe_link
from quarterdeck.tui.transcript_view.lines import Line, Mark, Role, Span, line
from quarterdeck.tui.transcript_view.wrap import indent, wrap
from quarterdeck.wire.replicas import AUTO_STOP_MINUTES, ReplicaEnvironment, RepositoryStatus

_ROLES = {
    "warning": Role.ASKING,
    "error": Role.FAILED,
    "success": Role.DONE,
    "primary": Role.WORKING,
    "secondary": Role.WORKING,
    "muted": Role.DIM,
}
_SIZES = {"small": "small: 2 CPU, 8 GB", "large": "large: 4 CPU, 16 GB"}
_POLICIES = {
    "archive_when_done": "archived when its work is done",
    "sleep_when_done": "put to sleep when its work is done",
    "delete_after_inactivity": "deleted when nothing goes on for long",
}

Names = dict[UUID, str]


def rows_of(
    state: ReplicaState, chat: ChatState | None, environments: Names, width: int
) -> list[Row]:
    """All that is known, in sections; what is not known is left out."""
    sections = (
        _head(state, width),
        _section("Repositories", _repositories(state), width),
        _section(*_goal(chat), width),
        _links("Previews", _previews(state), width),
        _links("Pull requests", _pulls(state), width),
        _section("Environment", _environment(state, environments), width),
        _section("Agent", _agent(state, chat), width),
        _section("Sandbox", _sandbox(state), width),
    )
    rows: list[Row] = []
    for section in sections:
        if section and rows:
            rows.append(Row("", ()))
        rows += section
    return rows


def _head(state: ReplicaState, width: int) -> list[Row]:
    mark = MARKS[state.attention]
    name = wrap(line(one_line(state.name), Role.HEADING, Mark.BOLD), width)
    words = f"{mark.sign} {mark.word}"
    if state.status not in words and state.status != "active":
        words += f" ({state.status})"
    at = state.record.last_activity_at or state.record.created_at
    rows = [*name, line(words, _ROLES[mark.color]), line(f"last active {_moment(at)}", Role.DIM)]
    return [Row("", row) for row in rows]


def _moment(at: datetime) -> str:
    return f"{at.astimezone():%d %b %H:%M}"


def _section(title: str, lines: Sequence[Line], width: int) -> list[Row]:
    if not lines:
        return []
    rows = [line(title, Role.DIM, Mark.BOLD)]
    for words in lines:
        rows += indent(wrap(words, width - 2), line("  "), line("  "))
    return [Row("", row) for row in rows]


def _links(title: str, links: Sequence[tuple[str, str]], width: int) -> list[Row]:
    """Each with what it is called, and its address."""
    if not links:
        return []
    rows = [Row("", line(title, Role.DIM, Mark.BOLD))]
    for name, url in links:
        address = one_line(url)
        link = Span(address, Role.LINK, link=safe_link(address))
        if len(name) + len(address) + 4 <= width:
            rows.append(Row(address, (Span(f"  {name}  "), link)))
        else:
            rows += (Row("", line(f"  {name}")), Row(address, (Span("    "), link)))
    return rows


def _repositories(state: ReplicaState) -> list[Line]:
    told = [_repository(status) for status in state.record.repository_statuses]
    return told or [line(one_line(one.name)) for one in state.record.repositories]


def _repository(status: RepositoryStatus) -> Line:
    words: list[Span] = [Span(one_line(status.repository), Role.TEXT, Mark.BOLD)]
    if status.branch:
        words.append(Span(f" {one_line(status.branch)}"))
    diff = status.git_diff or {}
    added, removed = int(diff.get("added") or 0), int(diff.get("removed") or 0)
    if added or removed:
        words += (Span(f" +{added}", Role.ADDED), Span(f" -{removed}", Role.REMOVED))
    return tuple(words)


def _goal(chat: ChatState | None) -> tuple[str, list[Line]]:
    goal = chat.record.goal if chat is not None else None
    if goal is None:
        return "", []
    of = f" of {_count(goal.token_budget)}" if goal.token_budget else ""
    used = f"{_count(goal.tokens_used)}{of} tokens, {duration_text(goal.time_used_seconds)}"
    return f"Goal ({one_line(goal.status)})", [line(one_line(goal.objective)), line(used, Role.DIM)]


def _previews(state: ReplicaState) -> list[tuple[str, str]]:
    return [(str(one.port), one.public_url) for one in state.previews or ()]


def _pulls(state: ReplicaState) -> list[tuple[str, str]]:
    known = [
        (f"{one_line(one.repository)} #{one.number}", one.url) for one in state.record.pull_requests
    ]
    told = {url for _, url in known}
    # What came by event since the record was read has its address alone.
    fresh = [
        (one_line(status.repository), url)
        for status in state.record.repository_statuses
        for url in status.pr_urls
        if url not in told
    ]
    return known + fresh


def _environment(state: ReplicaState, names: Names) -> list[Line]:
    environment_id = state.record.environment_id
    name = names.get(environment_id) if environment_id is not None else None
    lines = [line(one_line(name))] if name else []
    environment = state.record.environment
    if environment is not None and (put := ", ".join(_put_there(environment))):
        lines.append(line(put, Role.DIM))
    return lines


def _put_there(environment: ReplicaEnvironment) -> Iterator[str]:
    counted = (
        (len(environment.env_vars_set), "variable"),
        (len(environment.files_uploaded), "file"),
        (len(environment.skills_installed), "skill"),
    )
    for count, what in counted:
        if count:
            yield f"{count} {what}{'' if count == 1 else 's'}"


def _agent(state: ReplicaState, chat: ChatState | None) -> list[Line]:
    agent = (chat.record.provider if chat else None) or state.record.coding_agent
    # The model that was asked for is that of the agent that was asked for.
    model = state.record.model if agent == state.record.coding_agent else None
    parts = [one_line(part) for part in (agent, model) if part]
    lines = [line(" · ".join(parts))] if parts else []
    tokens = chat.tokens if chat is not None else None
    if tokens is not None and tokens.context is not None:
        of = f" of {_count(tokens.window)}" if tokens.window else ""
        lines.append(line(f"context {_count(tokens.context)}{of}", Role.DIM))
    if tokens is not None and tokens.turn is not None:
        lines.append(line(f"last turn {_count(tokens.turn)} tokens", Role.DIM))
    return lines


def _sandbox(state: ReplicaState) -> list[Line]:
    record = state.record
    environment = record.environment
    lines: list[Line] = []
    if record.size:
        lines.append(line(_SIZES.get(record.size, one_line(record.size))))
    if state.unisolated is not None:
        lines.append(line("not isolated", Role.ASKING))
    elif environment is not None and environment.isolation:
        lines.append(line(f"isolated by {one_line(environment.isolation)}"))
    elif not state.detailed:  # its place: what is below must not jump when it is known
        lines.append(line("isolation not read yet", Role.DIM))
    if record.lifecycle_policy in _POLICIES:
        lines.append(line(_POLICIES[record.lifecycle_policy]))
    if record.lifecycle_policy:
        minutes = record.auto_stop_minutes or AUTO_STOP_MINUTES
        lines.append(line(f"sleeps after {minutes} min with nothing going on", Role.DIM))
    lines.append(line(f"made {_moment(record.created_at)} by {one_line(record.source)}", Role.DIM))
    return lines


def _count(tokens: int) -> str:
    """A number of tokens as people say it."""
    if tokens < 1_000:
        return str(tokens)
    if tokens < 999_500:
        return f"{tokens / 1_000:.1f}k" if tokens < 9_950 else f"{tokens / 1_000:.0f}k"
    return f"{tokens / 1_000_000:.1f}M"
