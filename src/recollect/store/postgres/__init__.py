"""The store on PostgreSQL, for sessions that several machines share. Imported late: it needs the
extra `postgres`."""

from recollect.errors import CannotOpen

try:
    import psycopg
    import psycopg_pool
except ImportError as error:
    raise CannotOpen(
        "a PostgreSQL store",
        "the package psycopg is not installed; install it with `pip install 'recollect[postgres]'`",
    ) from error

__all__ = ["psycopg", "psycopg_pool"]
