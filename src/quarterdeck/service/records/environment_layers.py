"""The environments that shape a workspace, from the lowest to the uppermost."""

from dataclasses import dataclass, fields

from sqlalchemy import Connection, select

from quarterdeck.service.db.tables import environments


@dataclass(frozen=True)
class Layer:
    """The columns of an environment that a workspace is made from."""

    id: str
    name: str
    user_id: str | None
    is_global: bool
    repository_id: str | None
    repository_set_id: str | None
    system_prompt: str | None
    personal_preferences: str | None
    source_environment_id: str | None


_columns = select(*(environments.c[field.name] for field in fields(Layer)))


def layers_of(connection: Connection, organization_id: str, environment_id: str) -> list[Layer]:
    """The global environment, then the source, then the environment itself; each once.

    Empty when the organization has no environment of this id.
    """
    own = _one(connection, organization_id, environment_id)
    if own is None:
        return []
    found = [_global(connection, organization_id)]
    if own.source_environment_id is not None:
        found.append(_one(connection, organization_id, own.source_environment_id))
    found.append(own)
    return list({layer.id: layer for layer in found if layer is not None}.values())


def _one(connection: Connection, organization_id: str, environment_id: str) -> Layer | None:
    statement = _columns.where(
        environments.c.organization_id == organization_id, environments.c.id == environment_id
    )
    row = connection.execute(statement).first()
    return None if row is None else Layer(*row)


def _global(connection: Connection, organization_id: str) -> Layer | None:
    statement = _columns.where(
        environments.c.organization_id == organization_id, environments.c.is_global
    )
    row = connection.execute(statement).first()
    return None if row is None else Layer(*row)
