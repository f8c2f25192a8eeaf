"""Models: resolved by name, called over HTTP, and an embedded one that needs no network."""
