"""The built-in agent: runs the shell blocks of a message. It needs no model and no account."""
