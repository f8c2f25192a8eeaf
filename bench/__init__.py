"""Ratios, measured side by side in one run: `python -m bench --help`.

Every measurement is a process of its own (`bench.worker`), because a benchmark that shares a heap,
a page cache or a warm connection with the one before it measures that one too. Nothing here is
imported by recollect, and nothing here writes outside its own temporary directories and
`bench/results`.
"""
