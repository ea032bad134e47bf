"""Rows of the database as typed values, and the statements that read and write them."""
