"""How long and how many lines are kept in; the statements that delete the others out."""

# ruff: noqa: S608 - the statements are made of our own table names and of numbers

TABLES = ("usher_turns", "usher_calls")
"""Calls come last: their number decides about both."""


def delete_old(before: float, keep_rows: int | None) -> list[str]:
    """Delete what is older than a time, and what is older than the newest so many calls.

    Plain SQL, the same for both kinds of database.
    """
    statements = [f"DELETE FROM {table} WHERE started_at < {before!r}" for table in TABLES]
    if keep_rows is not None:
        newest = "SELECT started_at FROM usher_calls ORDER BY started_at DESC"
        lost = f"{newest} LIMIT 1 OFFSET {keep_rows}"
        statements += [f"DELETE FROM {table} WHERE started_at <= ({lost})" for table in TABLES]
    return statements
