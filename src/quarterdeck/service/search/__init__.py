"""Full-text search in the chats of an organization."""
