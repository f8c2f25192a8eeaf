"""Models: choosing one by name, asking it over HTTP, and one that needs no network."""
