"""Chats and messages: what the routes of both stand on."""
