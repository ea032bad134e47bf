"""Shared by the processes of one installation: directories, files, sockets, processes."""
