"""Keys of a part of a tab, whose actions the tab's pane carries out."""

from textual.binding import Binding
from textual.widget import Widget

from quarterdeck.tui.actions import Where, bindings
from quarterdeck.tui.panes.tabs import TabPane


def pane_bindings(where: Where) -> list[Binding]:
    """Bindings for the part that has the focus; carried out before the next key is looked at.

    They belong to the part and not to its pane, or they would be taken from a field beside it.
    """
    return [
        Binding(
            binding.key, _of_pane(binding.action), binding.description, show=False,
            priority=True, id=binding.id,
        )
        for binding in bindings(where)
    ]  # fmt: skip


def _of_pane(action: str) -> str:
    return action if action.startswith(("screen.", "app.")) else f"pane({action!r})"


class PaneKeys:
    """Put among the bases of a part that binds `pane_bindings`."""

    async def action_pane(self, action: str) -> None:
        """Has the pane carry an action out."""
        assert isinstance(self, Widget)
        pane = next(node for node in self.ancestors if isinstance(node, TabPane))
        await pane.run_action(action)
