"""Storage: one schema for SQLite and PostgreSQL, synchronous Core in threads."""
