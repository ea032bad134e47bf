"""What environments put into workspaces: composed at each start, told afterwards."""
