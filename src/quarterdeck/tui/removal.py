"""The work of a widget ends when it is removed, before any part of it is gone."""
# pyright: reportPrivateUsage=false

from typing import Any

from textual.app import App
from textual.await_remove import AwaitRemove
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widget import Widget
from textual.worker import active_worker  # pyright: ignore[reportUnknownVariableType]


class EndsWork(App[Any]):
    """Put before `App` among an app's bases.

    Textual takes the children out first and cancels a widget's workers when it goes itself: one that
    came back from the service in between would look for children that are not there.
    """

    def _prune(self, *nodes: Widget, parent: DOMNode | None = None) -> AwaitRemove:
        leaving = {part for node in nodes for part in node.walk_children(with_self=True)}
        ending: object = None
        if self._running and any(isinstance(node, Screen) for node in nodes):
            # A screen is often ended by a worker of its own, or of one of its parts.
            leaving.difference_update(nodes)
            ending = _current_worker()
        for worker in self.workers:
            if worker.node in leaving and worker is not ending:
                worker.cancel()
        return super()._prune(*nodes, parent=parent)


def _current_worker() -> object:
    return active_worker.get(None)  # pyright: ignore[reportUnknownVariableType]
