"""Columns for the settings of a chat's agent."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_COLUMNS = ("permission_mode_json", "model_json", "thinking_level_json", "settings_json")


def upgrade() -> None:
    """Add the columns, empty until the agents announce something."""
    for name in _COLUMNS:
        op.add_column("chats", sa.Column(name, sa.Text()))
