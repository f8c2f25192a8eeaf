"""NPLT, a small framed protocol over TCP: docs/nplt.md describes it."""
