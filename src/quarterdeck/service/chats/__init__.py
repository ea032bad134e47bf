"""Chats, their messages and their history, and the delivery to engines."""
