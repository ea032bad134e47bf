"""What stands beside the list: chat and terminal of a replica."""
