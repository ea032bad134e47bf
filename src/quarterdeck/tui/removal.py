"""The work of a widget ends when it is removed, before any part of it is gone."""
# pyright: reportPrivateUsage=false

from typing import Any

from textual.app import App
from textual.await_remove import AwaitRemove
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widget import Widget


class EndsWork(App[Any]):
    """Put before `App` among an app's bases.

    Textual takes the children out first and cancels a widget's workers when it goes itself: one that
    came back from the service in between would look for children that are not there.
    """

    def _prune(self, *nodes: Widget, parent: DOMNode | None = None) -> AwaitRemove:
        for node in nodes:
            # A screen is often ended by a worker of its own.
            if not isinstance(node, Screen):
                for part in node.walk_children(with_self=True):
                    self.workers.cancel_node(part)
        return super()._prune(*nodes, parent=parent)
