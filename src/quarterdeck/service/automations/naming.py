"""Which connected repository a person means who starts a run by hand for a pull request."""

from collections.abc import Iterable, Sequence

from quarterdeck.service.errors import ApiError
from quarterdeck.service.hosts.addresses import address_of
from quarterdeck.wire.automations import PullRequestRef
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.repositories import Repository

LISTED = 10


def full_name(repository: Repository) -> str:
    """`owner/name` as the host has it; of a local path the name under which it is connected."""
    found = address_of(repository.url)
    return repository.name if found is None else found[1]


def as_connected(about: PullRequestRef, repositories: Sequence[Repository]) -> PullRequestRef:
    """The pull request under its repository's full name, however that was typed.

    Raises:
        ApiError: INVALID_REQUEST when the name is no connected repository's, or that of several.
    """
    typed = about.repository.lower()
    meant = {full_name(one) for one in repositories if full_name(one).lower() == typed}
    meant = meant or {full_name(one) for one in repositories if one.name.lower() == typed}
    if len(meant) == 1:
        return about.model_copy(update={"repository": meant.pop()})
    if meant:
        raise _wrong(f"{about.repository} may be any of {_listed(meant)}: give the full name.")
    if not repositories:
        raise _wrong("No repository is connected that a pull request could be of.")
    there = _listed(map(full_name, repositories))
    raise _wrong(f"{about.repository} is not connected. Connected: {there}.")


def _listed(names: Iterable[str]) -> str:
    found = sorted(set(names), key=str.lower)
    more = f" and {len(found) - LISTED} more" if len(found) > LISTED else ""
    return ", ".join(found[:LISTED]) + more


def _wrong(why: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, why, "pr.repository")
