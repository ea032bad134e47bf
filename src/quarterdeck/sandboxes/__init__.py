"""Sandboxes: the files and processes of workspaces, by drivers that implement a port."""
