"""The dialog that gets work out of a replica: what each action would do, then its result."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Input, Static

from quarterdeck.store.git import (
    Failed,
    GetChanges,
    failure_of,
    has_pull_requests,
    local_branch,
)
from quarterdeck.store.status import threads_words
from quarterdeck.transcript.text import name_line, one_line
from quarterdeck.tui.actions import KeyContext, bindings, keyed
from quarterdeck.tui.actions.replicas import GETTING
from quarterdeck.tui.kit.dialogs import ConfirmScreen
from quarterdeck.tui.screens.choices import ActionChoice, ActionScreen, named_files, refusal_words
from quarterdeck.tui.textual_ext.type_ahead import hold_keys
from quarterdeck.tui.themes import checks_words, review_words
from quarterdeck.wire.git import GitState
from quarterdeck.wire.git_state import Uncommitted

LONGEST_PATH = 24
RUNNING = {
    "fetch": "Fetching",
    "force": "Fetching",
    "commit": "Committing",
    "apply": "Applying",
    "merge": "Merging",
    "push": "Pushing",
    "pull": "Reading pull requests from the host",
    "fix": "Reading failed checks from the host",
    "save": "Saving",
}
CHANGING_FILES = ("apply", "merge")
"""Actions that are not canceled halfway: they change the checkout."""


BRINGING = {"fetch": "Fetch", "force": "Fetch", "apply": "Apply", "merge": "Merge"}
"""Actions that bring work into the checkout's repository."""


class GetChangesScreen(ActionScreen[None]):
    """Reads the replica's repositories and the checkout, and carries actions out one at a time."""

    DEFAULT_CSS = """
    GetChangesScreen {
        & > VerticalScroll { width: 100; }
        & #repositories { height: auto; margin-bottom: 1; }
        & #message { display: none; margin-top: 1; background: $boost; border-title-color: $text; }
        & #commands { height: auto; margin-top: 1; color: $text-muted; }
    }
    """
    place: ClassVar[KeyContext] = KeyContext.GET_CHANGES
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyContext.GET_CHANGES)]
    choices = GETTING

    def __init__(self, changes: GetChanges, start: str = "", repository: str = "") -> None:
        """`start` is the action that is selected first, `repository` the one that it applies to."""
        super().__init__(start)
        self._changes = changes
        self._requested = repository
        self._repository = 0
        self._message = changes.title
        self._read = False
        self._diverged = False
        self._is_done = False
        """Whether the action has ended, and only its effects are being read."""

    def compose(self) -> ComposeResult:
        title = f"Get changes: {name_line(self._changes.name)}"
        with self.box(title, keyed("{get.close} close")):
            yield Static("Reading the repositories …", id="repositories", markup=False)
            yield from self.rows()
            message = Input(self._message, id="message", compact=True)
            message.cursor_blink = False
            yield message
            yield Static(id="result", markup=False)
            yield Static(id="commands", markup=False)

    def on_mount(self) -> None:
        self.query_one("#choices").display = False
        self.action_look()

    # display

    @property
    def _state(self) -> GitState | None:
        """The repository that actions apply to."""
        found = self._changes.repositories
        return found[self._repository] if found else None

    def show(self) -> None:
        """Part of `ActionScreen`."""
        state = self._state
        self.query_one("#repositories", Static).update(self._repositories())
        self.query_one("#choices").display = state is not None
        if state is not None:
            super().show()
            self.query_one("#commands", Static).update(self._commands(state))

    def _repositories(self) -> Text:
        found = self._changes.repositories
        if not found:
            return Text("This replica has no repository.")
        lines = [
            Text("▸ " if n == self._repository and len(found) > 1 else "").append(
                _summary(repository)
            )
            for n, repository in enumerate(found)
        ]
        if len(found) > 1:
            lines.append(Text(keyed("{get.repository} next repository"), style="dim"))
        if (state := self._state) is not None and self._changes.is_foreign(state):
            lines.append(Text(f"⚠ {self._foreign(state)}", style="bold"))
        return Text("\n").join(lines)

    def _foreign(self, state: GitState) -> str:
        """Return why the checkout is probably not the intended one."""
        top = _short(self._changes.checkout.top) if self._changes.checkout else ""
        source = one_line(self._changes.source(state.repository)) or "the replica's source"
        return f"{top} is not a clone of {source} and has no commit in common with it."

    def options(self) -> Iterator[ActionChoice]:
        """Part of `ActionScreen`."""
        if (state := self._state) is None:
            return
        changes, branch = self._changes, local_branch(state)
        here, local = changes.checkout, changes.checkout_state
        top = _short(here.top) if here else "your checkout"
        missing = "" if here else changes.no_checkout
        no_branch = "" if branch else "No branch is checked out in the replica"
        current = local.branch if local else None
        same = f"{branch} is checked out here" if branch and branch == current else ""
        yield ActionChoice(
            f"Fetch branch into {top}",
            f"→ {branch} (checkout untouched)"
            if not self._diverged
            else keyed(f"{branch} has diverged here; {{get.force}} replaces it"),
            missing or no_branch or same,
        )
        left = state.uncommitted.files if state.uncommitted else 0
        yield ActionChoice(
            f"Commit {_files(left)} first" if left else "Commit",
            f'"{self._message}"  {keyed("{get.message} edit message")}',
            "" if left else "Everything is committed",
        )
        yield ActionChoice(
            f"Apply as a patch to {top}",
            f"({_status_text(current, local.uncommitted if local else 0)})",
            missing,
        )
        yield ActionChoice(
            f"Merge into {current or 'the current branch'}",
            f"in {top}, commits only" if left else f"in {top}",
            missing or no_branch or same,
        )
        source = changes.source(state.repository) or "its source"
        yield ActionChoice(
            f"Push {state.branch or ''} to origin",
            f"{source} with your credentials, from the host",
            no_branch,
        )
        yield self._pull_request(state, no_branch)
        yield ActionChoice(f"Save as {changes.patch.name}", f"in {_short(changes.patch.parent)}")

    def _pull_request(self, state: GitState, no_branch: str) -> ActionChoice:
        branch = one_line(state.branch or "")
        found = self._changes.pull_request(state.repository)
        if found is None:
            base = one_line(state.base_branch or "the base branch")
            possible = has_pull_requests(self._changes.replica, state.repository)
            why = (
                no_branch
                if possible
                else "The source is a directory: fetch or merge, then push from there"
            )
            return ActionChoice(f"Open a pull request of {branch}", f"into {base}", why)
        facts = (review_words(found), threads_words(found.unresolved_threads), checks_words(found))
        notes = [words for words in facts if words]
        fix = keyed("; {get.fix} asks the agent to fix them") if found.checks.failed else ""
        label = f"Pull request #{found.number}: {one_line(found.title)}"
        return ActionChoice(label, f"{', '.join([found.state, *notes])}{fix}")

    def _commands(self, state: GitState) -> Table:
        """Return the equivalent commands."""
        name, several = quote(self._changes.name), len(self._changes.repositories) > 1
        name += f" --repository {quote(state.repository)}" if several else ""
        commands = [f"{verb} {name}" for verb in ("fetch", "commit", "apply", "merge", "push")]
        commands.append(f"pr {name}")
        commands.append(f"diff {name} > {quote(self._changes.patch.name)}")
        table = Table.grid(padding=(0, 2, 0, 0))
        for start in range(0, len(commands), 2):
            table.add_row(*(f"$ qd replica {command}" for command in commands[start : start + 2]))
        return table

    # selection

    def action_turn(self, step: int) -> None:
        """Select another repository."""
        if self.active is None and len(self._changes.repositories) > 1:
            self._repository = (self._repository + step) % len(self._changes.repositories)
            self._diverged = False
            self.tell("")
            self.show()

    def action_edit(self) -> None:
        """Edit the message of the commit."""
        field = self.query_one("#message", Input)
        field.display = True
        self.set_focus(field)
        field.scroll_visible(animate=False)

    @on(Input.Submitted, "#message")
    def _keep_message(self, event: Input.Submitted) -> None:
        event.stop()
        self._message = event.value.strip() or self._changes.title
        self._close_message()

    def _close_message(self) -> None:
        field = self.query_one("#message", Input)
        field.display = False
        field.value = self._message
        self.set_focus(None)
        self.show()

    def action_cancel(self) -> None:
        """Stop editing, cancel what runs, or close."""
        if self.query_one("#message", Input).display:
            self._close_message()
        elif self.active is None or self._is_done:
            self.dismiss(None)
        elif self.active[0] not in CHANGING_FILES:
            self.active[1].cancel()

    # execution

    def action_start(self, name: str) -> None:
        """Carry out an action, unless another one runs or it has no effect now."""
        if self.active is not None or self._state is None or not self._read:
            return
        self._is_done = False
        if self.fits({"force": "fetch", "fix": "pull"}.get(name, name)):
            self.begin(name)

    async def carry_out(self, name: str) -> str:
        """Part of `ActionScreen`."""
        state = self._state
        if state is None:
            return ""
        if name in BRINGING and self._changes.is_foreign(state):
            question = f"{BRINGING[name]} into another repository?"
            confirm = ConfirmScreen(question, self._foreign(state), BRINGING[name])
            if not await self.app.push_screen_wait(confirm):
                return ""
        cancel = "" if name in CHANGING_FILES else keyed("  {get.close} cancel")
        self.tell(f"{RUNNING[name]} …{cancel}")
        try:
            text = await self._done(name, state)
        except Failed as error:
            self._diverged = self._diverged or failure_of(error).diverged
            raise
        self._is_done = True
        with suppress(*Failed):  # the action is done all the same
            await self._changes.look()
        return text

    async def _done(self, name: str, state: GitState) -> str:
        """Carry out an action and return its result as a text."""
        changes, branch = self._changes, one_line(local_branch(state))
        top = _short(changes.checkout.top) if changes.checkout else ""
        match name:
            case "fetch" | "force":
                commit = await changes.fetch(state, force=name == "force")
                self._diverged = False
                return f"Fetched {branch} ({commit[:10]}) into {top}.{_left(state)}"
            case "commit":
                done = await changes.commit(state, self._message)
                return f"Committed {done.commit.sha[:10]} {one_line(done.commit.title)}."
            case "apply":
                files = await changes.apply(state)
                if not files:
                    return "Nothing to apply: the checkout already has all changes."
                return f"Applied to {top}, {_files(len(files))}: {named_files(files)}."
            case "merge":
                commit = await changes.merge(state)
                into = changes.checkout_state.branch if changes.checkout_state else None
                if commit is None:
                    return f"Already up to date with {branch}.{_left(state)}"
                return f"Merged {branch} into {into or top} ({commit[:10]}).{_left(state)}"
            case "push":
                pushed = await changes.push(state)
                if not pushed.changed:
                    return f"{one_line(pushed.branch)} is up to date at origin.{_left(state)}"
                return f"Pushed {one_line(pushed.branch)} ({pushed.commit[:10]}).{_left(state)}"
            case "pull":
                return await self._show_pull_request(state)
            case "fix":
                return await self._fix(state)
            case _:
                path = await changes.save(state)
                return (
                    f"Saved {_short(path)}." if path else "Nothing to save: there are no changes."
                )

    async def _show_pull_request(self, state: GitState) -> str:
        from quarterdeck.tui.screens.pull_request import pull_request_dialogs

        changes = self._changes
        await changes.pulls.read(changes.replica_id)
        if changes.replica is None:
            return "The replica was deleted."
        self.tell("")
        return await pull_request_dialogs(self, changes.pulls, changes.replica, state.repository)

    async def _fix(self, state: GitState) -> str:
        from quarterdeck.tui.screens.pull_request import fix_checks

        changes = self._changes
        await changes.pulls.read(changes.replica_id)
        replica = changes.replica
        failing = (
            [pull for pull in replica.failing if pull.repository == state.repository]
            if replica
            else []
        )
        if replica is None or not failing:
            return "No failed checks."
        return await fix_checks(changes.pulls, replica, failing)

    @work(group="look", exclusive=True)
    async def action_look(self) -> None:
        """Read the repositories and the checkout again."""
        try:
            with hold_keys(self, "Reading the repositories"):
                await self._changes.look()
        except Failed as error:
            self.query_one("#repositories", Static).update("")
            self.tell(refusal_words(failure_of(error)), "failed")
            return
        names = [repository.repository for repository in self._changes.repositories]
        if not self._read:
            known = self._requested in names
            self._repository = names.index(self._requested) if known else self._changes.likeliest()
        self._repository = min(self._repository, max(0, len(names) - 1))
        self._read = True
        self.show()


def _summary(state: GitState) -> Text:
    """Return a repository in one line."""
    parts = [one_line(state.repository), one_line(state.branch or "(no branch)")]
    ahead = _commits(state.ahead or 0)
    parts.append(f"{ahead} ahead of {one_line(state.base_branch or 'the base')}")
    if state.behind:
        parts.append(f"{state.behind} behind")
    left = state.uncommitted or Uncommitted(files=0, added=0, removed=0)
    if left.files:
        parts.append(f"{_files(left.files)} uncommitted +{left.added} -{left.removed}")
    if state.operation:
        parts.append(f"{one_line(state.operation)} in progress")
    return Text("  ".join(parts))


def _left(state: GitState) -> str:
    left = state.uncommitted.files if state.uncommitted else 0
    stays = "stays" if left == 1 else "stay"
    return f" {_files(left).capitalize()} {stays} uncommitted in the replica." if left else ""


def _files(count: int) -> str:
    return f"{count} file" if count == 1 else f"{count} files"


def _commits(count: int) -> str:
    return f"{count} commit" if count == 1 else f"{count} commits"


def _status_text(branch: str | None, uncommitted: int) -> str:
    on = f"on {one_line(branch)}" if branch else "on no branch"
    if not uncommitted:
        return f"{on}, clean"
    return f"{on}, {uncommitted} uncommitted {'file' if uncommitted == 1 else 'files'}"


def _short(path: Path) -> str:
    """Return a path for display: below `~`, and only its end when it is long."""
    text = one_line(str(path))
    home = str(Path.home())
    if text == home or text.startswith(f"{home}/"):
        text = f"~{text.removeprefix(home)}"
    if len(text) <= LONGEST_PATH:
        return text
    end = text[1 - LONGEST_PATH :]
    return f"…{end[max(0, end.find('/')) :]}"
