"""An agent in a folder: the one road that every door takes to a model."""
