"""The async API client: one class per resource over one connection."""
