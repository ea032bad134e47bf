"""End the workers of a widget that was removed."""

from typing import Any

from textual.app import App
from textual.await_remove import AwaitRemove
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widget import Widget
from textual.worker import (
    Worker,
    active_worker,  # pyright: ignore[reportUnknownVariableType]
)
from textual.worker_manager import WorkerManager

# pyright: reportPrivateUsage=false


class _Workers(WorkerManager):
    def add_worker(self, worker: Worker[Any], start: bool = True, exclusive: bool = True) -> None:
        """Part of `WorkerManager`: what begins while its widget is being removed is canceled."""
        super().add_worker(worker, start, exclusive)
        if any(node._pruning for node in worker.node.ancestors_with_self):
            worker.cancel()


class WorkerCleanup(App[Any]):
    """Mixin to put before `App`.

    Textual removes the children first and cancels a widget's workers when it is removed itself: a worker
    that resumed in between would look for children that no longer exist, and so would
    one that a late message starts.
    """

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._workers = _Workers(self)

    def _prune(self, *nodes: Widget, parent: DOMNode | None = None) -> AwaitRemove:
        leaving = {part for node in nodes for part in node.walk_children(with_self=True)}
        # A screen is often closed by its own worker, or by one of its parts.
        closes = self._running and any(isinstance(node, Screen) for node in nodes)
        ending = _current_worker() if closes else None
        for worker in self.workers:
            if worker.node in leaving and worker is not ending:
                worker.cancel()
        return super()._prune(*nodes, parent=parent)


def _current_worker() -> object:
    return active_worker.get(None)  # pyright: ignore[reportUnknownVariableType]
