"""Other programs' session files: import, export and mirrors; `format_table` lists the formats."""
