"""Servers over the sessions of a store: NPLT over TCP, and HTTP. Both go through the Runtime."""
