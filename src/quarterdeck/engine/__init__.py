"""The in-workspace daemon: journal, terminals, exec, chats, repositories. It outlives the service."""
