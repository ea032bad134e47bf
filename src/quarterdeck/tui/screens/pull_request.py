"""Pull requests of a replica: a form that opens one, and a dialog that shows and merges them."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, cast

from pydantic import BaseModel
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from quarterdeck.store.pull_requests import PullRequestStore, left_out
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.store.status import threads_words
from quarterdeck.transcript.text import name_line, one_line
from quarterdeck.tui.actions import KeyContext, bindings, keyed
from quarterdeck.tui.actions.replicas import MERGING
from quarterdeck.tui.clipboard import copy_text
from quarterdeck.tui.forms.kit import Field, FormScreen, ModelForm
from quarterdeck.tui.forms.kit.spec import FieldKind
from quarterdeck.tui.frames import SettledLayout
from quarterdeck.tui.kit.dialogs import ConfirmScreen, Dialog
from quarterdeck.tui.outside import open_address, opener
from quarterdeck.tui.screens.choices import ActionChoice, ActionScreen
from quarterdeck.tui.themes import checks_words, review_words
from quarterdeck.wire.git import (
    LONGEST_TITLE,
    MergeMethod,
    OpenPullRequest,
    PullRequestDetail,
)

MOST_CHECKS = 6
"""How many failed checks are named."""
METHODS: dict[str, str] = {
    "merge": "a merge commit",
    "squash": "one commit",
    "rebase": "rebased commits",
}
NO_CHAT = "The replica has no chat yet. Open the replica first."


class OpenScreen(FormScreen[PullRequestDetail]):
    """Pushes the branch of a repository, and opens a pull request from it."""

    def __init__(self, pulls: PullRequestStore, state: ReplicaState, repository: str) -> None:
        """`repository` is the one that is chosen first."""
        names = [known.name for known in state.record.repositories]
        fields = (
            Field("title"),
            Field(
                "body", "Description", "Empty: the titles of the commits.", FieldKind.LINES, rows=4
            ),
            Field("base", "Base branch", placeholder=_base(state, repository)),
            Field("draft"),
            Field(
                "repository",
                options=[(one_line(name), name) for name in names],
                help="The branch is pushed first.",
            ),
        )
        start = {"repository": repository, "title": one_line(state.newest_title)[:LONGEST_TITLE]}
        form = ModelForm(OpenPullRequest, fields, start)

        async def save(body: BaseModel) -> PullRequestDetail:
            return await pulls.create(state.id, cast("OpenPullRequest", body))

        super().__init__(f"Open a pull request: {state.name}", form, save, verb="Open")
        self._left_out = " ".join(left_out(state, repository))

    def extra(self) -> ComposeResult:
        """Part of `FormScreen`."""
        if self._left_out:
            yield Static(self._left_out, markup=False)


class PullRequestScreen(ActionScreen[str]):
    """Shows pull requests one at a time; dismissed with the repository to open another one from."""

    DEFAULT_CSS = """
    PullRequestScreen {
        & > VerticalScroll { width: 84; }
        & #pull { height: auto; margin-bottom: 1; }
    }
    """
    place: ClassVar[KeyContext] = KeyContext.PULL_REQUEST
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyContext.PULL_REQUEST)]
    choices = MERGING

    def __init__(
        self,
        pulls: PullRequestStore,
        state: ReplicaState,
        shown: PullRequestDetail,
        message: str = "",
    ) -> None:
        """`shown` is shown first, with the result of the last action."""
        super().__init__()
        self._pulls = pulls
        self._state = state
        self._pull = shown
        self._first_message = message

    def compose(self) -> ComposeResult:
        title = f"Pull request: {name_line(self._state.name)}"
        with self.box(title, keyed("{pull.again} refresh · {pull.close} close")):
            yield Static(id="pull", markup=False)
            yield from self.rows()
            yield Static(id="result", markup=False)

    def on_mount(self) -> None:
        self.show()
        self.tell(self._first_message, "done")

    # display

    @property
    def _known(self) -> list[PullRequestDetail]:
        return self._state.pull_requests or [self._pull]

    def show(self) -> None:
        """Part of `ActionScreen`."""
        self._pull = next((known for known in self._known if _same(known, self._pull)), self._pull)
        self.query_one("#pull", Static).update(self._described(self._pull))
        super().show()

    def _described(self, pull: PullRequestDetail) -> Text:
        draft = ", draft" if pull.draft else ""
        lines = [
            Text(f"{one_line(pull.repository)} #{pull.number}  ", style="bold").append(
                one_line(pull.title), style="not bold"
            ),
            Text(f"{pull.state}{draft}, {one_line(pull.head)} into {one_line(pull.base)}"),
        ]
        if pull.mergeable is False:
            lines.append(Text(f"conflicts with {one_line(pull.base)}"))
        facts = (review_words(pull), threads_words(pull.unresolved_threads), checks_words(pull))
        lines += [Text(words) for words in facts if words]
        failed = pull.checks.failed
        for check in failed[:MOST_CHECKS]:
            lines.append(Text(f"  {one_line(check.name)}").append(f"  {_link(check.url)}", "dim"))
        if len(failed) > MOST_CHECKS:
            lines.append(Text(f"  and {len(failed) - MOST_CHECKS} more"))
        lines.append(Text(_link(pull.url), style="underline"))
        if len(self._known) > 1:
            at = next((n for n, known in enumerate(self._known, 1) if _same(known, pull)), 1)
            words = keyed(f"{at} of {len(self._known)} · {{pull.next}} next pull request")
            lines.append(Text(words, style="dim"))
        return Text("\n").join(lines)

    def options(self) -> Iterator[ActionChoice]:
        """Part of `ActionScreen`."""
        pull = self._pull
        closed = "" if pull.state == "open" else f"The pull request is {pull.state}"
        closed = closed or ("The pull request is a draft" if pull.draft else "")
        base = one_line(pull.base)
        yield ActionChoice(f"Merge into {base}", f"as {METHODS['merge']}", closed)
        yield ActionChoice(f"Squash into {base}", f"as {METHODS['squash']}", closed)
        yield ActionChoice(f"Rebase onto {base}", f"as {METHODS['rebase']}", closed)
        red = pull.state == "open" and bool(pull.checks.failed)
        yield ActionChoice(
            "Fix failed checks",
            "sends the failed checks to the agent",
            "" if red else "No failed checks",
        )
        here = "" if opener(pull.url) else keyed("no browser here; {pull.copy} to copy the URL")
        yield ActionChoice("Open in the browser", "", here)
        yield ActionChoice("Copy the URL")
        others = [known for known in self._known if known.repository == pull.repository]
        is_open = any(other.state == "open" for other in others)
        yield ActionChoice(
            "Open another pull request",
            f"of {one_line(pull.repository)}",
            "A pull request is open already" if is_open else "",
        )

    # selection

    def action_turn(self, step: int) -> None:
        """Show another pull request."""
        known = self._known
        at = next((n for n, pull in enumerate(known) if _same(pull, self._pull)), 0)
        if self.active is None and len(known) > 1:
            self._pull = known[(at + step) % len(known)]
            self.tell("")
            self.show()

    def action_cancel(self) -> None:
        """Close; wait for a running merge."""
        if self.active is None:
            self.dismiss("")

    def action_look(self) -> None:
        """Read the pull requests from the host again."""
        self.begin("look")

    def begin(self, name: str) -> None:
        """Part of `ActionScreen`."""
        if name == "open":
            self.dismiss(self._pull.repository)
        elif name == "copy":
            copy_text(self, self._pull.url)
        else:
            super().begin(name)

    # execution

    async def carry_out(self, name: str) -> str:
        """Part of `ActionScreen`."""
        pull = self._pull
        match name:
            case "merge" | "squash" | "rebase":
                return await self._merged(pull, name)
            case "fix":
                return await fix_checks(self._pulls, self._state, [pull])
            case "browse":
                command = opener(pull.url)
                done = command is not None and await open_address(command)
                return "" if done else "Could not open a browser."
            case _:
                self.tell("Reading from the host …")
                await self._pulls.read(self._state.id)
                return ""

    async def _merged(self, pull: PullRequestDetail, method: MergeMethod) -> str:
        consequence = [
            f"Merges {one_line(pull.head)} into {one_line(pull.base)} as {METHODS[method]}.",
            f"{checks_words(pull)}." if pull.checks.state not in (None, "passing") else "",
            *left_out(self._state, pull.repository, pull),
        ]
        question = f"Merge #{pull.number} of {one_line(pull.repository)}?"
        words = "\n".join(sentence for sentence in consequence if sentence)
        if not await self.app.push_screen_wait(ConfirmScreen(question, words, "Merge")):
            return ""
        self.tell("Merging …")
        merged = await self._pulls.merge(self._state.id, pull, method)
        return f"Merged #{merged.number} into {one_line(merged.base)}."


async def fix_checks(
    pulls: PullRequestStore, state: ReplicaState, failing: Sequence[PullRequestDetail]
) -> str:
    """Send the agent the failed checks of pull requests; return the result as a text.

    Raises:
        ClientError: the service refused.
        OSError: the message could not be kept on disk, so it was not sent.
    """
    if not await pulls.ask_to_fix(state.id, failing):
        return NO_CHAT
    names = ", ".join(one_line(check.name) for pull in failing for check in pull.checks.failed)
    return f"Asked the agent to fix {names}."


async def pull_request_dialogs(
    screen: Dialog[None] | SettledLayout[None],
    pulls: PullRequestStore,
    replica: ReplicaState,
    repository: str = "",
) -> str:
    """Show the pull requests that were read, or the form that opens one; return the opened one.

    Args:
        screen: over which the dialogs are shown.
        repository: show an open one of this repository alone; empty: any of the replica.
    """
    shown = replica.pull_request
    if repository:
        known = [
            request for request in replica.pull_requests or () if request.repository == repository
        ]
        shown = next((pull for pull in known if pull.state == "open"), None)
    message = opened = ""
    while True:
        if shown is not None:
            repository = await screen.app.push_screen_wait(
                PullRequestScreen(pulls, replica, shown, message)
            )
            if not repository:
                return opened
        repository = repository or _likeliest(replica)
        form = OpenScreen(pulls, replica, repository)
        pull_request = await screen.app.push_screen_wait(form)
        if pull_request is None:
            return opened
        shown = pull_request
        message = opened = f"Opened #{pull_request.number}: {_link(pull_request.url)}"


def _likeliest(state: ReplicaState) -> str:
    """Return the repository with its own commits, else the first."""
    ahead = [status.repository for status in state.record.repository_statuses if status.ahead]
    return next(iter((*ahead, *(repository.name for repository in state.record.repositories))), "")


def _base(state: ReplicaState, repository: str) -> str:
    git = state.repository(repository)
    return one_line((git.base_branch if git else None) or "the repository's base branch")


def _same(this: PullRequestDetail, other: PullRequestDetail) -> bool:
    return (this.repository, this.number) == (other.repository, other.number)


def _link(url: str | None) -> str:
    return one_line(url or "")
