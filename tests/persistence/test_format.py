"""The file layer: what it holds, how it writes, what the file system may do to it."""

import errno
import os
import stat
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import safetensors

from bagwise import _files
from bagwise.exceptions import ModelFileError
from bagwise.persistence import _format
from persistence.standins import blob_of, take_apart

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]

HEADER = {"model": {"C": 1.5, "name": 'quo"te \\ \ud800 é \0', "list": [None, True, 3]}}
ARRAYS = {
    "a": np.arange(6.0).reshape(2, 3),
    "none": np.empty((0, 4), np.float32),
    "scalar": np.array(np.pi),
    "flags": np.array([True, False]),
}


def assert_equal_arrays(got, expected):
    assert set(got) == set(expected)
    for name in expected:
        assert got[name].dtype == expected[name].dtype.newbyteorder("=")
        np.testing.assert_array_equal(got[name], expected[name], strict=False)
        assert got[name].shape == expected[name].shape


def test_round_trip(tmp_path):
    path = tmp_path / "model"
    _format.write(path, HEADER, ARRAYS)
    header, arrays = _format.read(path)
    assert header == HEADER
    assert_equal_arrays(arrays, ARRAYS)
    for array in arrays.values():
        assert array.flags.writeable
        assert array.flags.owndata


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_in_both_byte_orders(dtype):
    values = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    arrays = {"here": values, "big": values.astype(values.dtype.newbyteorder(">"))}
    assert_equal_arrays(_format.decode(blob_of({}, arrays))[1], arrays)


@pytest.mark.parametrize("view", [np.s_[:, ::2], np.s_[::-1], np.s_[1:, 1:], np.s_[:, 0]])
def test_views_and_fortran_order_keep_their_values(view):
    base = np.arange(35.0).reshape(5, 7)
    arrays = {"view": base[view], "fortran": np.asfortranarray(base)[view]}
    assert_equal_arrays(_format.decode(blob_of({}, arrays))[1], arrays)


def test_safetensors_itself_opens_the_file(tmp_path):
    path = tmp_path / "model.safetensors"
    _format.write(path, HEADER, ARRAYS)
    with safetensors.safe_open(path, framework="np") as file:
        assert set(file.metadata()) == {"bagwise"}
        assert_equal_arrays({name: file.get_tensor(name) for name in file.keys()}, ARRAYS)  # noqa: SIM118


def test_equal_content_gives_equal_files():
    assert len({blob_of(HEADER, ARRAYS) for _ in range(20)}) == 1


@pytest.mark.parametrize(
    "array",
    [
        np.array(["a"]),
        np.array([b"a"]),
        np.array([object()]),
        np.array([1j]),
        np.array([1], np.longdouble),
        np.array(["2020-01-01"], "M8[D]"),
        np.zeros(2, [("x", float)]),
        np.zeros(2, "V3"),
    ],
    ids=lambda array: str(array.dtype),
)
def test_other_dtypes_are_refused(array):
    with pytest.raises(ModelFileError, match="cannot hold array 'x'"):
        _format.encode({}, {"x": array})


def test_header_limit_on_writing():
    with pytest.raises(ModelFileError, match="the limit is"):
        _format.encode({"text": "x" * _format.MAX_HEADER}, {})


def test_any_single_changed_byte_is_refused():
    blob = blob_of(HEADER, ARRAYS)
    for position in range(len(blob)):
        for change in (1, 0x80):
            changed = bytearray(blob)
            changed[position] ^= change
            with pytest.raises(ModelFileError):
                _format.decode(bytes(changed))


def test_every_truncation_is_refused():
    blob = blob_of(HEADER, ARRAYS)
    for length in range(len(blob)):
        with pytest.raises(ModelFileError):
            _format.decode(blob[:length])


def test_digest_is_that_of_the_file_with_the_digest_blanked():
    import hashlib

    blob = blob_of(HEADER, ARRAYS)
    digest = take_apart(blob)[1]["sha256"]
    blank = blob.replace(digest.encode(), b"0" * 64)
    assert hashlib.sha256(blank).hexdigest() == digest


def test_a_string_cannot_pose_as_the_digest_field():
    header = {"text": '"sha256":"' + "0" * 64, "more": '\\"sha256\\":\\"' + "0" * 64}
    assert _format.decode(blob_of(header, {}))[0] == header


# The file system


def test_missing_file_and_forbidden_file_are_os_errors(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError):
        _format.read(tmp_path / "absent")
    path = tmp_path / "model"
    _format.write(path, {}, {})

    def forbidden(*args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", forbidden)
    with pytest.raises(PermissionError):
        _format.read(path)


def test_read_error_is_a_model_file_error(tmp_path, monkeypatch):
    path = tmp_path / "model"
    _format.write(path, {}, {})

    def broken(*args, **kwargs):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("pathlib.Path.open", broken)
    with pytest.raises(ModelFileError, match="cannot be read"):
        _format.read(path)


def test_folder_and_pipe_are_refused(tmp_path):
    with pytest.raises(ModelFileError, match="not a regular file"):
        _format.read(tmp_path)
    with pytest.raises(ModelFileError, match="not a regular file"):
        _format.write(tmp_path, {}, {})
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ModelFileError, match="not a regular file"):
            _format.read(tmp_path / "pipe")
        with pytest.raises(ModelFileError, match="not a regular file"):
            _format.write(tmp_path / "pipe", {}, {})


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(ModelFileError, match=r"there is no folder .*nowhere"):
        _format.write(tmp_path / "nowhere" / "model", {}, {})


@pytest.mark.skipif(
    os.name == "nt" or not hasattr(os, "geteuid") or os.geteuid() == 0,
    reason="needs a user whom permissions bind",
)
def test_unwritable_folder(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(ModelFileError, match="cannot be written") as raised:
            _format.write(tmp_path / "model", {}, {})
    finally:
        tmp_path.chmod(0o700)
    assert isinstance(raised.value.__cause__, PermissionError)


@pytest.mark.parametrize("path", ["nul\0l", "x" * 5000])
def test_impossible_paths(path):
    with pytest.raises(ModelFileError, match="cannot be written"):
        _format.write(path, {}, {})
    with pytest.raises(ModelFileError, match="cannot be read"):
        _format.read(path)


def test_a_link_is_followed(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"old")
    try:
        link.symlink_to(real)
    except OSError:
        pytest.skip("links cannot be made here")
    _format.write(link, HEADER, {})
    assert link.is_symlink()
    assert _format.read(real)[0] == HEADER


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_permissions_of_a_replaced_file_stay(tmp_path):
    path = tmp_path / "model"
    _format.write(path, {}, {})
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    for mode in (0o600, 0o664):
        path.chmod(mode)
        _format.write(path, HEADER, {})
        assert stat.S_IMODE(path.stat().st_mode) == mode


# Fault injection: every call of the operating system on the way fails once

CALLS = ["open", "chmod", "write", "fsync", "close", "replace"]


class Faults:
    """Makes the k-th of the system calls fail, before or after it has done its work."""

    def __init__(self, monkeypatch, fail_at, error, *, after):
        self.count, self.fail_at, self.error, self.after = 0, fail_at, error, after
        for name in CALLS:
            monkeypatch.setattr(os, name, self.wrapped(name, getattr(os, name)))

    def wrapped(self, name, real):
        def call(*args, **kwargs):
            self.count += 1
            fails = self.count == self.fail_at
            if fails and not self.after and name != "close":
                raise self.error
            result = real(*args, **kwargs)
            if fails:
                if name == "open":
                    os.closerange(result, result + 1)
                raise self.error
            return result

        return call


@pytest.mark.parametrize("existing", [False, True])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "No space left"), OSError(errno.EIO, "I/O error"), KeyboardInterrupt()],
    ids=["ENOSPC", "EIO", "interrupt"],
)
def test_failure_at_every_system_call(tmp_path, monkeypatch, existing, after, error):
    monkeypatch.setattr(_files, "_WRITE_BYTES", 256)
    path, new, old = tmp_path / "model", blob_of(HEADER, ARRAYS), blob_of({"old": 1}, {})
    expected = ModelFileError if isinstance(error, OSError) else KeyboardInterrupt
    fail_at, failures = 0, 0
    while True:
        path.unlink(missing_ok=True)
        if existing:
            path.write_bytes(old)
        fail_at += 1
        with monkeypatch.context() as patch:
            faults = Faults(patch, fail_at, error, after=after)
            if _attempt(path, expected) is None:
                break
        failures += 1
        content = path.read_bytes() if path.exists() else None
        assert content in ((old if existing else None), new), fail_at
        assert {entry.name for entry in tmp_path.iterdir()} <= {"model"}
        assert faults.count >= fail_at
    assert failures >= 8 + existing  # open, chmod, writes, sync, close, replace; then the folder
    assert path.read_bytes() == new


def _attempt(path, expected):
    try:
        _format.write(path, HEADER, ARRAYS)
    except expected as error:
        return error
    return None


def test_many_writers_and_readers_of_one_file(tmp_path):
    path = tmp_path / "model"
    _format.write(path, {"writer": -1}, ARRAYS)

    def work(number):
        for _ in range(10):
            if number % 2:
                _format.write(path, {"writer": number}, ARRAYS)
            else:
                header, arrays = _format.read(path)
                assert header["writer"] in (-1, 1, 3)
                assert_equal_arrays(arrays, ARRAYS)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


def test_a_failing_cleanup_does_not_hide_the_failure(tmp_path, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left")

    def stuck(*args, **kwargs):
        raise OSError(errno.EIO, "stuck")

    monkeypatch.setattr(os, "write", full)
    monkeypatch.setattr("pathlib.Path.unlink", stuck)
    with pytest.raises(ModelFileError, match="No space left"):
        _format.write(tmp_path / "model", HEADER, ARRAYS)


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP])
def test_folders_that_cannot_be_synced_are_tolerated(tmp_path, monkeypatch, code):
    real = os.fsync

    def fsync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(code, "not for folders")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    _format.write(tmp_path / "model", HEADER, ARRAYS)
    assert _format.read(tmp_path / "model")[0] == HEADER


@pytest.mark.skipif(os.name == "nt", reason="folders are not opened there")
def test_folder_that_may_not_be_listed_is_tolerated(tmp_path, monkeypatch):
    real = os.open

    def refuse(path, *args):
        if os.fspath(path) == str(tmp_path.resolve()):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, *args)

    monkeypatch.setattr(os, "open", refuse)
    _format.write(tmp_path / "model", HEADER, ARRAYS)
    assert _format.read(tmp_path / "model")[0] == HEADER


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kill_at_every_system_call(tmp_path):
    """SIGKILL cannot be answered: a temporary file may stay, but the model is old or new."""
    script = textwrap.dedent(
        f"""
        import os, pathlib, signal, sys, warnings
        warnings.simplefilter("ignore")
        from bagwise import _files
        from bagwise.persistence import _format
        path, calls = pathlib.Path(sys.argv[1]) / "model", {CALLS!r}
        _files._WRITE_BYTES = 64
        old, new = ({{"old": 1}}, {{}}), ({{"new": list(range(99))}}, {{}})
        blobs = [b"".join(_format.encode(*content)) for content in (old, new)]
        for kill_at in range(1, 1000):
            path.write_bytes(blobs[0])
            child = os.fork()
            if child == 0:
                count = 0
                def wrapped(real):
                    def call(*args, **kwargs):
                        global count
                        count += 1
                        if count == kill_at:
                            os.kill(os.getpid(), signal.SIGKILL)
                        return real(*args, **kwargs)
                    return call
                for name in calls:
                    setattr(os, name, wrapped(getattr(os, name)))
                _format.write(path, *new)
                os._exit(0)
            status = os.waitpid(child, 0)[1]
            assert path.read_bytes() in blobs, kill_at
            if status == 0:
                break
        assert path.read_bytes() == blobs[1]
        sys.stdout.write(str(kill_at))
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 12
