"""The panel with facts about a replica."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import ClassVar
from uuid import UUID

from textual import work
from textual.binding import BindingType

from quarterdeck.client.errors import ClientError
from quarterdeck.store.chats import ChatState
from quarterdeck.store.replicas import ReplicaState, is_missing, read_info
from quarterdeck.store.services import Services
from quarterdeck.transcript.blocks import duration_text
from quarterdeck.transcript.text import money, name_line, one_line
from quarterdeck.tui.actions import KeyContext, eager_bindings
from quarterdeck.tui.clipboard import copy_text
from quarterdeck.tui.kit.key_context import HasKeyContext
from quarterdeck.tui.kit.rows import ROLES, Row, RowList
from quarterdeck.tui.kit.spans import Emphasis, Line, Span, TextRole, indent, line, wrap
from quarterdeck.tui.themes import MARKS
from quarterdeck.tui.transcript_view.markdown import safe_link
from quarterdeck.wire.git_state import RepositoryStatus
from quarterdeck.wire.replicas import AUTO_STOP_MINUTES, ReplicaEnvironment

_SIZES = {"small": "small: 2 CPU, 8 GB", "large": "large: 4 CPU, 16 GB"}
_POLICIES = {
    "archive_when_done": "archived when its work is done",
    "sleep_when_done": "sleeps when its work is done",
    "delete_after_inactivity": "deleted after long inactivity",
}

Names = dict[UUID, str]


def rows_of(
    state: ReplicaState,
    chat: ChatState | None,
    environments: Names,
    agent_name: Callable[[str], str],
    width: int,
) -> list[Row]:
    """Return all known facts, in sections."""
    sections = (
        _head(state, width),
        _section("Repositories", _repositories(state), width),
        _section(*_goal(chat), width),
        _links("Previews", _previews(state), width),
        _links("Pull requests", _pulls(state), width),
        _section("Environment", _environment(state, environments), width),
        _section("Agent", _agent(state, chat, agent_name), width),
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
    name = wrap(line(name_line(state.name), TextRole.HEADING, Emphasis.BOLD), width)
    words = f"{mark.sign} {mark.word}"
    if state.status not in words and state.status != "active":
        words += f" ({one_line(state.status)})"
    at = state.record.last_activity_at or state.record.created_at
    head = wrap(line(words, ROLES[mark.color]), width)
    rows = [*name, *head, line(f"last active {_moment(at)}", TextRole.DIM)]
    if lost := state.record.unreachable_since:
        why = f": {one_line(reason)}" if (reason := state.record.unreachable_reason) else ""
        rows += wrap(line(f"unreachable since {_moment(lost)}{why}", TextRole.FAILED), width)
    return [Row("", row) for row in rows]


def _moment(at: datetime) -> str:
    return f"{at.astimezone():%d %b %H:%M}"


def _section(title: str, lines: Sequence[Line], width: int) -> list[Row]:
    if not lines:
        return []
    rows = [line(title, TextRole.DIM, Emphasis.BOLD)]
    for words in lines:
        rows += indent(wrap(words, width - 2), line("  "), line("  "))
    return [Row("", row) for row in rows]


def _links(title: str, links: Sequence[tuple[str, str]], width: int) -> list[Row]:
    """Return each with its name and address."""
    if not links:
        return []
    rows = [Row("", line(title, TextRole.DIM, Emphasis.BOLD))]
    for name, url in links:
        address = one_line(url)
        link = Span(address, TextRole.LINK, link=safe_link(address))
        if len(name) + len(address) + 4 <= width:
            rows.append(Row(address, (Span(f"  {name}  "), link)))
        else:
            rows += (Row("", line(f"  {name}")), Row(address, (Span("    "), link)))
    return rows


def _repositories(state: ReplicaState) -> list[Line]:
    statuses = [_repository(status) for status in state.record.repository_statuses]
    return statuses or [line(one_line(repository.name)) for repository in state.record.repositories]


def _repository(status: RepositoryStatus) -> Line:
    words: list[Span] = [Span(one_line(status.repository), TextRole.TEXT, Emphasis.BOLD)]
    if status.branch:
        words.append(Span(f" {one_line(status.branch)}"))
    diff = status.git_diff or {}
    added, removed = int(diff.get("added") or 0), int(diff.get("removed") or 0)
    if added or removed:
        words += (Span(f" +{added}", TextRole.ADDED), Span(f" -{removed}", TextRole.REMOVED))
    return tuple(words)


def _goal(chat: ChatState | None) -> tuple[str, list[Line]]:
    goal = chat.record.goal if chat is not None else None
    if goal is None:
        return "", []
    of = f" of {_count(goal.token_budget)}" if goal.token_budget else ""
    used = f"{_count(goal.tokens_used)}{of} tokens, {duration_text(goal.time_used_seconds)}"
    return f"Goal ({one_line(goal.status)})", [
        line(one_line(goal.objective)),
        line(used, TextRole.DIM),
    ]


def _previews(state: ReplicaState) -> list[tuple[str, str]]:
    return [(str(preview.port), preview.public_url) for preview in state.previews or ()]


def _pulls(state: ReplicaState) -> list[tuple[str, str]]:
    known = [
        (f"{one_line(request.repository)} #{request.number}", request.url)
        for request in state.record.pull_requests
    ]
    urls = {url for _, url in known}
    # Those that came by event since the record was read have only an address.
    fresh = [
        (one_line(status.repository), url)
        for status in state.record.repository_statuses
        for url in status.pr_urls
        if url not in urls
    ]
    return known + fresh


def _environment(state: ReplicaState, names: Names) -> list[Line]:
    environment_id = state.record.environment_id
    name = names.get(environment_id) if environment_id is not None else None
    lines = [line(one_line(name))] if name else []
    environment = state.record.environment
    if environment is not None and (put := ", ".join(_put_there(environment))):
        lines.append(line(put, TextRole.DIM))
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


def _agent(
    state: ReplicaState, chat: ChatState | None, agent_name: Callable[[str], str]
) -> list[Line]:
    agent = (chat.record.provider if chat else None) or state.record.coding_agent
    # The requested model belongs to the requested agent.
    model = state.record.model if agent == state.record.coding_agent else None
    parts = [one_line(part) for part in (agent and agent_name(agent), model) if part]
    lines = [line(" · ".join(parts))] if parts else []
    tokens = chat.tokens if chat is not None else None
    if tokens is not None and tokens.context is not None:
        of = f" of {_count(tokens.window)}" if tokens.window else ""
        lines.append(line(f"context {_count(tokens.context)}{of}", TextRole.DIM))
    if tokens is not None and tokens.turn is not None:
        lines.append(line(f"last turn {_count(tokens.turn)} tokens", TextRole.DIM))
    if tokens is not None and tokens.cost:
        lines.append(line(f"cost {money(tokens.cost, tokens.currency)}", TextRole.DIM))
    return lines


def _sandbox(state: ReplicaState) -> list[Line]:
    record = state.record
    environment = record.environment
    lines: list[Line] = []
    if record.size:
        lines.append(line(_size(record.size, environment)))
    if state.unisolated is not None:
        lines.append(line("not isolated", TextRole.WARNING))
    elif environment is not None and environment.isolation:
        lines.append(line(f"isolated by {one_line(environment.isolation)}"))
    elif not state.detailed:  # reserve its place: what is below must not jump when it is known
        lines.append(line("isolation unknown", TextRole.DIM))
    if record.lifecycle_policy in _POLICIES:
        lines.append(line(_POLICIES[record.lifecycle_policy]))
    if record.lifecycle_policy:
        minutes = record.auto_stop_minutes or AUTO_STOP_MINUTES
        lines.append(line(f"sleeps after {minutes} min idle", TextRole.DIM))
    lines.append(
        line(f"created {_moment(record.created_at)} by {one_line(record.source)}", TextRole.DIM)
    )
    return lines


def _size(size: str, environment: ReplicaEnvironment | None) -> str:
    """Return the size; limits only where the sandbox enforces them."""
    limited = environment.size_limited if environment is not None else None
    if limited:
        return _SIZES.get(size, one_line(size))
    return f"{one_line(size)}, not limited" if limited is False else one_line(size)


def _count(tokens: int) -> str:
    """Return a formatted number of tokens."""
    if tokens < 1_000:
        return str(tokens)
    if tokens < 999_500:
        return f"{tokens / 1_000:.1f}k" if tokens < 9_950 else f"{tokens / 1_000:.0f}k"
    return f"{tokens / 1_000_000:.1f}M"


NARROWEST = 10
"""Cells below which it has no size yet."""


class InfoPanel(RowList[str], HasKeyContext):
    """Facts of one replica; the cursor goes from link to link."""

    DEFAULT_CSS = """
    InfoPanel {
        width: 34;
        padding: 0 1;
        border-left: solid $panel-lighten-2;
        &:blur > .rows--cursor { background: transparent; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*eager_bindings(KeyContext.INFO)]

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._state: ReplicaState | None = None
        self._requested_for: ReplicaState | None = None
        """The missing facts of this one are being read, or could not be."""

    @property
    def place(self) -> KeyContext:
        return KeyContext.INFO

    def show(self, state: ReplicaState) -> None:
        """Show the replica as the store has it. Costs nothing while the panel is hidden."""
        self._state = state
        self._show_facts()

    def come_online(self) -> None:
        """Note that the connection is back: what could not be read is read now."""
        self._requested_for = None
        self._show_facts()

    def on_show(self) -> None:
        self._show_facts()

    def on_resize(self) -> None:
        super().on_resize()
        self._show_facts()

    def _show_facts(self) -> None:
        state, width = self._state, self.size.width - 1
        if state is None or not self.display or width < NARROWEST:
            return
        store = self._services.of(state.id)
        names = store.environment_names
        self.show_rows(rows_of(state, state.chat_to_show, names, store.agent_name, width))
        if state is not self._requested_for and is_missing(store, state):
            self._requested_for = state
            self._read(state)

    @work(group="read", exclusive=True)
    async def _read(self, state: ReplicaState) -> None:
        store = self._services.of(state.id)
        try:
            await read_info(store, state)
        except* ClientError as errors:
            # Missing facts are left out; the app state watches the connection itself.
            first = errors.exceptions[0]
            store.connection_lost(first)

    def action_copy_link(self) -> None:
        if self.chosen:
            copy_text(self, self.chosen)
