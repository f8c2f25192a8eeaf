"""recollect behind the interfaces of other agent frameworks; none of them is imported."""
