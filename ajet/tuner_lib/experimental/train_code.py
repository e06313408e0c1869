"""Training code that a client sends: received and checked, never run by the reference engine."""

from __future__ import annotations

import io
import zipfile
from datetime import datetime
from pathlib import Path, PurePosixPath

MAX_UNPACKED = 512 * 1024 * 1024


def receive_train_code(body: bytes, base_dir: Path) -> Path:
    """Unpack a zip of an ``ajet/`` folder below ``base_dir/ajet_temp`` and return the unpacked folder.

    Raises ValueError that says what is wrong with the archive; then nothing is written.
    """
    if not body:
        raise ValueError("the body is empty; send the bytes of a zip archive that holds an ajet/ folder")
    try:
        archive = zipfile.ZipFile(io.BytesIO(body))
        members = [info for info in archive.infolist() if not info.is_dir()]
        for info in members:
            path = PurePosixPath(info.filename)
            if path.is_absolute() or ".." in path.parts or "\\" in info.filename:
                raise ValueError(f"the archive member {info.filename!r} leads outside the archive")
            if path.parts[0] != "ajet":
                raise ValueError(f"the archive member {info.filename!r} is not inside ajet/")
        if not members:
            raise ValueError("the archive holds no ajet/ folder")
        if sum(info.file_size for info in members) > MAX_UNPACKED:
            raise ValueError(f"the archive unpacks to more than {MAX_UNPACKED:,} bytes")
        damaged = archive.testzip()
        if damaged:
            raise ValueError(f"the archive member {damaged!r} is damaged")
        target = base_dir / "ajet_temp" / f"{datetime.now():%Y%m%d_%H%M%S_%f}"
        archive.extractall(target, [info.filename for info in members])
    except zipfile.BadZipFile as error:
        raise ValueError(f"the body is not a zip archive ({error})") from None
    return target / "ajet"
