"""Files and folders that are there whole or not at all, even after a power cut.

New content is written under another name and flushed to the disk before it is renamed, within one
folder, and the folder is flushed after. Whatever fails before that leaves what was there.
"""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

_WRITE_BYTES = 2**24  # per system call, so that Ctrl-C is answered between two


def write_file(path: str | os.PathLike[str], *pieces: bytes | memoryview) -> None:
    """Write a file so that ``path`` holds either what it held before or all of the new content.

    Parameters
    ----------
    path : str or path-like
        A link is followed: the file that it points to is replaced, and keeps its permissions.
    *pieces : bytes or memoryview
        The content, in order.
    """
    target = Path(path).resolve()
    mode = _mode_of_existing(target)
    temporary = target.with_name(f".bagwise-{secrets.token_hex(8)}.tmp")
    try:
        _write_synced(temporary, pieces, mode)
        temporary.replace(target)
    except BaseException:  # Ctrl-C too must not leave the temporary file behind
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def place_folder(new: Path, path: Path) -> None:
    """Rename a folder, whose files are flushed, to a name beside it; what was there is removed.

    Parameters
    ----------
    new : Path
        The folder; it has this name again if the change fails.
    path : Path
        Its new name.
    """
    _sync_folder(new)
    old = path.with_name(f".{path.name}.replaced-{secrets.token_hex(4)}")
    with ExitStack() as undo:
        if path.exists():
            path.rename(old)
            undo.callback(old.rename, path)
        new.rename(path)
        undo.callback(path.rename, new)
        _sync_folder(path.parent)
        undo.pop_all()
    shutil.rmtree(old, ignore_errors=True)


def _mode_of_existing(target: Path) -> int | None:
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        if not target.parent.is_dir():
            msg = f"there is no folder {str(target.parent)!r}"
            raise FileNotFoundError(msg) from None
        return None
    if not stat.S_ISREG(mode):
        msg = "there is something there that is not a regular file"
        raise FileExistsError(msg)
    return stat.S_IMODE(mode)


def _write_synced(path: Path, pieces: Sequence[bytes | memoryview], mode: int | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o666 if mode is None else mode)
    try:
        if mode is not None:  # the umask may have taken bits away
            path.chmod(mode)
        for piece in pieces:
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(descriptor, rest[:_WRITE_BYTES]) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where folders can be synced at all."""
    if os.name == "nt":
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # a folder that may be written to but not listed
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
