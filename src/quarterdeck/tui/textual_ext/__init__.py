"""Everything that uses private parts of Textual."""
