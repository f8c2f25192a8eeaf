"""The files of a prompt that was sent come back as they were, without those that it mentions."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

from recollect.entries import FileRef, InlineData, Message, Part, Text
from recollect.workspace.file_mentions import attachment_parts, prompt_parts
from recollect.workspace.sent_files import sent_files

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def sent(folder: Path, prompt: str, *names: str) -> tuple[Part, ...]:
    async def read() -> tuple[Part, ...]:
        files = tuple(folder / name for name in names)
        return (*await prompt_parts(prompt, (folder,)), *await attachment_parts(files))

    return asyncio.run(read())


def message(*parts: Part) -> Message:
    return Message(role="user", parts=parts)


def test_attached_files_are_sent_again_word_for_word(tmp_path: Path) -> None:
    (tmp_path / "shot: 1 (new).png").write_bytes(PNG)
    (tmp_path / "a.py").write_text("print(1)\nprint(2)\n")
    (tmp_path / "empty").write_text("")
    names = ("shot: 1 (new).png", "a.py", "empty")
    parts = sent(tmp_path, "look at these", *names)
    for name in names:
        (tmp_path / name).unlink()
    found = sent_files(message(*parts))
    assert [one.name for one in found] == ["shot: 1 (new).png", "a.py", "empty"]
    assert found[0].label.startswith("image shot: 1 (new).png ")
    again = asyncio.run(attachment_parts(found))
    assert (parts[0], *again) == parts


def test_a_mentioned_file_is_no_attachment_even_if_one_has_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("print(1)\n")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("print(2)\n")
    prompt = "compare @a.py(this) and @src with @missing.py"
    (attached,) = sent_files(message(*sent(tmp_path, prompt, "src/a.py")))
    assert attached.parts == (Text("The file @a.py:\n1→print(2)"),)
    assert sent_files(message(*sent(tmp_path, prompt))) == ()


def test_files_that_another_program_sent_come_back_without_a_name() -> None:
    image, far = (
        InlineData(mime="image/png", data=PNG),
        FileRef(mime="video/mp4", uri="https://x/y"),
    )
    found = sent_files(message(image, Text("what is this"), far, Text("and this\nis said")))
    assert [one.parts for one in found] == [(image,), (far,)]
    assert found[0].label == "image 70 bytes"
    assert found[1].label == "video"


def test_a_mentioned_file_that_is_too_long_to_be_sent_whole_is_no_attachment(
    tmp_path: Path,
) -> None:
    (tmp_path / "long.txt").write_text("line\n" * 20_000)
    parts = sent(tmp_path, "read @long.txt")
    assert any(isinstance(one, Text) and ", cut:" in one.text for one in parts)
    assert sent_files(message(*parts)) == ()
