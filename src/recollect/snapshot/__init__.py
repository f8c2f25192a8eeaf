"""A session as a `<state_snapshot>` within a budget, built by quoting the log; and parsed back."""
