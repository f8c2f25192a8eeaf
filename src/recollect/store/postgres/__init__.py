"""The store on PostgreSQL, for sessions that several machines share. Imported late: it needs the
extra `postgres`."""
