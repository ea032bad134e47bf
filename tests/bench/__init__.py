"""Speed and memory, run by `make bench`: a table with the limit or the peer beside each row."""
