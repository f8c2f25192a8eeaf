"""What people read of sessions, contexts and requests, on any screen; nothing is printed here."""
