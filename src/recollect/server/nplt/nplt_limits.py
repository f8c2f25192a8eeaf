"""What an NPLT server allows its clients; every limit that is reached is answered with an error."""

from __future__ import annotations

import msgspec


class NpltLimits(msgspec.Struct, frozen=True):
    """The defaults let a seed's client and a person who types work undisturbed."""

    connections: int = 2_000
    per_address: int = 100  # of another machine; clients of this one share an address
    frames_per_second: float = 200.0
    frame_burst: int = 1_000
    bytes_per_second: float = 4_000_000.0
    byte_burst: int = 20_000_000
    hello_seconds: float = 10.0  # where a token is required
    header_seconds: float = 4.0  # from the first byte of a frame to the end of its header
    payload_seconds: float = 10.0
    silent_seconds: float = 600.0  # without a first frame
    idle_seconds: float = 3_600.0  # without a frame, heartbeats included
    write_seconds: float = 10.0  # in which a client reads what is waiting for it
    write_buffer: int = 262_144  # bytes that wait for it before that time counts
    waiting: int = 32  # requests of a client that wait for one before them
    new_sessions: int = 200  # by one connection
    upload_bytes: int = 10_000_000  # one file
    uploads: int = 10  # files for one message
    uploads_bytes: int = 20_000_000  # of one connection
    all_uploads_bytes: int = 200_000_000  # of all connections
