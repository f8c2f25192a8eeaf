"""The state of a session as text: code builds a ledger from the log and renders it as a snapshot.

`build_ledger` folds the entries of one path, `add_model_prose` adds what a model wrote,
`render_snapshot` writes a `<state_snapshot>` within a budget, and `parse_snapshot` reads one back,
ours or a model's. All of it is pure: the same entries and budget give the same text.
"""
