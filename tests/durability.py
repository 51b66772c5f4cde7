"""A spy on what makes files durable: flushes of files and folders, and renames."""

import os
import stat
from pathlib import Path


def tree(path):
    """Return the content of a file, of all files of a folder by name, or None."""
    if not path.exists():
        return None
    if path.is_file():
        return path.read_bytes()
    return {member.name: tree(member) for member in sorted(path.iterdir())}


class DiskSpy:
    """Watches a folder: what a power cut would leave of it.

    Nothing counts as written before its flush. A file is on the disk with the bytes that it had
    when it was flushed, a folder with the names that it had then.

    Parameters
    ----------
    monkeypatch : pytest.MonkeyPatch
        Puts the spy between the library and the system.
    root : Path
        The folder.
    fail_at : int, optional
        The number, from 1, of the flush or rename that fails instead.
    error : BaseException, optional
        How it fails.
    """

    def __init__(self, monkeypatch, root, fail_at=None, error=None):
        self.root, self.fail_at, self.error = root.resolve(), fail_at, error
        self.calls = []  # "fsync" and "rename", in order
        self.unsafe = []  # what is wrong with a rename
        self._flushed = {}  # by inode: bytes of a file, names in a folder
        self._before = {self._inode(path): self._state(path) for path in self._paths()}
        for name in ("rename", "replace"):
            monkeypatch.setattr(os, name, self._rename(getattr(os, name)))
        monkeypatch.setattr(os, "fsync", self._fsync(os.fsync))

    def check(self, target):
        """Fail unless the target came by a safe rename and would be there after a power cut."""
        assert "rename" in self.calls
        assert not self.unsafe, self.unsafe
        assert self._is_flushed(target), f"{target.name} is not on the disk"
        names = self._flushed.get(self._inode(target.parent.resolve()), ())
        assert target.name in names, f"the folder of {target.name} was not flushed after the rename"

    def _fsync(self, real):
        def fsync(descriptor):
            self._count("fsync")
            real(descriptor)
            status = os.fstat(descriptor)
            for path in self._paths():
                if self._inode(path) == (status.st_dev, status.st_ino):
                    assert stat.S_ISDIR(status.st_mode) == path.is_dir()
                    self._flushed[self._inode(path)] = self._state(path)

        return fsync

    def _rename(self, real):
        def rename(source, target, **options):
            self._count("rename")
            new, place = Path(source).resolve(), Path(target)
            if new.parent != place.parent.resolve():
                self.unsafe.append(f"{new.name} is moved from another folder")
            if not self._is_flushed(new):
                self.unsafe.append(f"{new.name} is renamed before it is flushed")
            return real(source, target, **options)

        return rename

    def _count(self, call):
        self.calls.append(call)
        if len(self.calls) == self.fail_at:
            raise self.error

    def _is_flushed(self, path):
        """Whether all is on the disk as it is, from before or by flushes."""
        inode = self._inode(path)
        states = (self._before.get(inode), self._flushed.get(inode))
        inside = path.iterdir() if path.is_dir() else ()
        return self._state(path) in states and all(map(self._is_flushed, inside))

    def _paths(self):
        return [self.root, *self.root.rglob("*")]

    @staticmethod
    def _inode(path):
        status = path.stat()
        return status.st_dev, status.st_ino

    @staticmethod
    def _state(path):
        if path.is_dir():
            return sorted(member.name for member in path.iterdir())
        return path.read_bytes()
