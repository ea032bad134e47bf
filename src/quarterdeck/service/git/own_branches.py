"""Which branches of a source belong to a replica.

Those are its own branch, `qd/NAME`, and the ones below it, except those of another replica whose
name leads there: `qd/shop/fix` belongs to the replica `shop/fix` if there is one, not to `shop`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from sqlalchemy import Connection, select

from quarterdeck.service.db.tables import workspaces
from quarterdeck.service.git.operations import HEADS
from quarterdeck.service.replicas.rows import WorkspaceRow, branch_of


@dataclass(frozen=True)
class OwnBranches:
    """The branches of a replica.

    Args:
        branch: its own, without `refs/heads/`; None if it belongs to an older replica.
        others: branches of other replicas. Case is ignored below its own branch: some sources
            keep branches in a file system that folds it.
    """

    branch: str | None
    others: frozenset[str] = frozenset()

    @classmethod
    def of(cls, branch: str, others: Iterable[str]) -> Self:
        """Return the branches of a replica, given the branches of the others."""
        below = f"{branch}/".casefold()
        return cls(
            branch, frozenset(o for one in others if (o := one.casefold()).startswith(below))
        )

    def has(self, ref: str) -> bool:
        """Return whether a ref is the replica's branch, or one below it that no other replica owns."""
        if self.branch is None or not f"{ref}/".startswith(f"{HEADS}{self.branch}/"):
            return False
        path = f"{ref.removeprefix(HEADS)}/".casefold()
        return not any(path.startswith(f"{other}/") for other in self.others)


def own_branches(connection: Connection, row: WorkspaceRow) -> OwnBranches:
    """Return the branches of a workspace, as the names of its organization's workspaces are now.

    Different names may have the same branch, such as `a:b` and `a-b`. It is the oldest one's.
    """
    branch = branch_of(row.name)
    statement = select(workspaces.c.id, workspaces.c.name, workspaces.c.created_at).where(
        workspaces.c.organization_id == row.organization_id, workspaces.c.id != row.id
    )
    others: list[str] = []
    for id, name, created_at in connection.execute(statement):
        other = branch_of(name)
        if other == branch and (created_at, id) < (row.created_at, row.id):
            return OwnBranches(None)
        others.append(other)
    return OwnBranches.of(branch, others)
