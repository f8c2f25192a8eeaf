"""The promises of docs/internals/reliability.md, each shown with real processes."""
