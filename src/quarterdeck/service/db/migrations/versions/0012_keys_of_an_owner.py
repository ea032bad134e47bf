"""An index for the API keys of an organization or user, which are counted for each new one."""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the index."""
    op.create_index("ix_api_keys_owner", "api_keys", ["organization_id", "user_id"])
