"""What all tables share: their collection, and the columns that recur."""

from sqlalchemy import Column, ForeignKey, MetaData, String

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def key() -> Column[str]:
    """The id of a row, which is its primary key."""
    return Column("id", String(36), primary_key=True)


def moment(name: str, nullable: bool = False) -> Column[str]:
    """A date-time as ISO text in UTC."""
    return Column(name, String(32), nullable=nullable)


def organization() -> Column[str]:
    """The organization that a row belongs to."""
    return Column("organization_id", String(36), ForeignKey("organizations.id"), nullable=False)


def workspace(primary_key: bool = False) -> Column[str]:
    """The workspace that a row belongs to; the row ends with it."""
    return Column(
        "workspace_id",
        String(36),
        ForeignKey("workspaces.id", ondelete="CASCADE"),
        primary_key=primary_key,
        nullable=False,
    )
