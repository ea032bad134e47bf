"""The form that forks a replica."""

from typing import cast

from pydantic import BaseModel
from textual.app import ComposeResult
from textual.widgets import Static

from quarterdeck.store.commands import Commands
from quarterdeck.store.replicas import ReplicaState
from quarterdeck.transcript.text import one_line
from quarterdeck.tui.forms.kit import Field, FormScreen, ModelForm
from quarterdeck.tui.forms.kit.spec import FieldKind
from quarterdeck.wire.replicas import ForkReplica, ReplicaDetail

KEPT = (
    "The new replica has the same files, branches and uncommitted changes.\n"
    "The newest chat continues there if its agent supports that;\n"
    "otherwise it is copied to a file next to the repositories."
)


class ForkScreen(FormScreen[ReplicaDetail]):
    """Dismissed with the new replica, or with None."""

    def __init__(self, commands: Commands, state: ReplicaState) -> None:
        fields = (
            Field("message", "Prompt (optional)", kind=FieldKind.LINES, rows=4),
            Field("name", placeholder=f"{one_line(state.name)}-fork", rule="no spaces"),
        )

        async def save(body: BaseModel) -> ReplicaDetail:
            return await commands.fork(state.id, cast("ForkReplica", body))

        title = f"Fork {one_line(state.name)}"
        super().__init__(title, ModelForm(ForkReplica, fields), save, verb="Fork")

    def extra(self) -> ComposeResult:
        """Part of `FormScreen`."""
        yield Static(KEPT, markup=False)
