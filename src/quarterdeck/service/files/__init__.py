"""Searching a workspace's files without waking it (operation 13).

route -> FileSearch -> Indexes    what is saved, what is fresh, what is asked of engine and mirror
                    -> Prepared   one index, ready to be searched
                    -> ranking    best match first
"""
