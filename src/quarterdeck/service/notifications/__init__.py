"""Notifications and webhooks, and requests to URLs that users enter."""
