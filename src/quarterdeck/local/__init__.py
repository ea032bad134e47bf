"""What the processes of one installation share about this machine: its directory and its sockets."""
