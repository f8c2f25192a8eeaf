"""The state of a session as a text: a ledger that code builds from the log, rendered as a snapshot.

`build_ledger` folds the entries of one path, `render_snapshot` writes a `<state_snapshot>` within a budget,
`parse` reads one back (ours or what a model wrote), `merge` joins what a model wrote with the
ledger. All of it is pure: the same entries and the same budget give the same text.
"""
