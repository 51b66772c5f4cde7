"""Fetching: where sets are looked for, what is checked, and what is said if they are not there."""

import functools
import hashlib
import http.server
import os
import shutil
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from bagwise.datasets import _fetch, _registry, available, cache_folder, fetch, info
from bagwise.datasets._originals import read_original
from bagwise.exceptions import BagFileError, DatasetUnavailableError

DATA = os.environ.get("BAGWISE_DATA")
ORIGINALS = os.environ.get("BAGWISE_ORIGINALS")
needs_data = pytest.mark.skipif(not DATA, reason="BAGWISE_DATA names no folder with the sets")
needs_originals = pytest.mark.skipif(
    not ORIGINALS, reason="BAGWISE_ORIGINALS names no folder with the original files, NAME/FILE"
)
WITH_FILES = [n for n in available() if info(n).origin is not None and info(n).origin.files]

TOY = b"a,a_1,1,2,0.\na,a_2,3,4,0.\nb,b_1,5,6.5,1.\n"


def _npz(folder, name):
    with np.load(Path(folder) / f"{name}.npz", allow_pickle=False) as stored:
        return {key: stored[key] for key in stored.files}


def _entry(url="http://localhost:1/toy.data", *, sha256=None, extra="", bags=2):
    sha256 = sha256 or hashlib.sha256(TOY).hexdigest()
    return f"""
[toy]
title = "Toy"
task = "classification"
citation = "Nobody 1999"
licence = "None"
bags = {bags}
instances = 3
features = 2
label_names = ["no", "yes"]
label_counts = [1, 1]
sha256 = "{"0" * 64}"
{extra}
[toy.origin]
repository = "nobody/toys"
commit = "{"1" * 40}"
layout = "c45"
[[toy.origin.files]]
path = "data/toy.data"
url = "{url}"
sha256 = "{sha256}"
"""


@pytest.fixture
def use(monkeypatch, tmp_path):
    """Make a registry current, with an empty cache and no folder of data."""
    monkeypatch.delenv("BAGWISE_DATA", raising=False)
    monkeypatch.setenv("BAGWISE_CACHE", str(tmp_path / "cache"))

    def set_registry(text):
        entries = _registry.parse_registry(text)
        monkeypatch.setattr(_registry, "registry", lambda: entries)
        return tmp_path / "cache"

    return set_registry


@pytest.fixture
def server(tmp_path):
    """Serve a folder on this machine; count the requests."""
    folder = tmp_path / "served"
    folder.mkdir()
    requests = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            requests.append(self.path)

    handler = functools.partial(Handler, directory=str(folder))
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield folder, f"http://127.0.0.1:{httpd.server_port}", requests
    httpd.shutdown()
    thread.join()
    httpd.server_close()


# ------------------------------------------------------------------------- the sets themselves


@needs_data
@pytest.mark.parametrize("name", available())
def test_every_set_loads(name, tmp_path):
    data, entry = fetch(name, data_home=tmp_path, download=False), info(name)
    assert data.label_names == entry.label_names
    assert len(data.bags) == len(data.y) == entry.n_bags
    assert_array_equal(data.bags.labels, data.y)
    if data.instance_y is not None:
        assert len(data.instance_y) == entry.n_instances
    assert entry.citation in data.description
    assert list(tmp_path.iterdir()) == []


@needs_data
def test_corel3_is_made_of_the_positive_bags():
    data = fetch("corel3", download=False)
    for label, name in enumerate(("fox", "tiger", "elephant")):
        stored = _npz(DATA, name)
        own = [
            stored["X"][stored["offsets"][i] : stored["offsets"][i + 1]]
            for i in np.flatnonzero(stored["y"] == 1)
        ]
        assert_array_equal(data.bags[data.y == label].instances, np.vstack(own))


@needs_data
def test_corel1000_derived_is_corel1000_stored(tmp_path, monkeypatch):
    shutil.copy(Path(DATA) / "corel2000.npz", tmp_path)
    monkeypatch.delenv("BAGWISE_DATA")
    data, stored = fetch("corel1000", data_home=tmp_path, download=False), _npz(DATA, "corel1000")
    assert_array_equal(data.bags.instances, stored["X"])
    assert_array_equal(data.bags.offsets, stored["offsets"])
    assert_array_equal(data.y, stored["y"])


@needs_data
def test_single_label_sets_are_made_of_bags_with_one_label():
    stored = _npz(DATA, "miml_scene")
    data = fetch("scene2", download=False)
    chosen = (stored["y"].sum(axis=1) == 1) & (stored["y"][:, 2:].sum(axis=1) == 1)
    assert_array_equal(data.bags.bag_names, stored["bag_names"][chosen])
    assert_array_equal(data.y, stored["y"][chosen].argmax(axis=1) - 2)


@needs_data
@needs_originals
@pytest.mark.parametrize("name", WITH_FILES)
def test_the_original_equals_the_set(name):
    entry = info(name)
    paths = [Path(ORIGINALS) / name / file.name for file in entry.origin.files]
    if not all(path.is_file() for path in paths):
        pytest.skip(f"{ORIGINALS} has no {name}")
    for path, file in zip(paths, entry.origin.files, strict=True):
        assert hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256
    arrays, stored = read_original(entry, paths), _npz(DATA, name)
    keys = set(stored) - {"label_names"}
    if name == "musk2":  # the names are not in this copy
        keys -= {"bag_names"}
    assert set(arrays) == keys
    for key in keys:
        assert_array_equal(arrays[key], stored[key])
    assert arrays["X"].dtype == stored["X"].dtype


@needs_originals
def test_originals_in_the_cache_are_enough(tmp_path, monkeypatch):
    if not (Path(ORIGINALS) / "musk1").is_dir():
        pytest.skip(f"{ORIGINALS} has no musk1")
    monkeypatch.delenv("BAGWISE_DATA", raising=False)
    shutil.copytree(Path(ORIGINALS) / "musk1", tmp_path / "originals" / "musk1")
    assert len(fetch("musk1", data_home=tmp_path, download=False).bags) == 92


# ---------------------------------------------------------------------------- how it is fetched


def test_download_verify_and_keep(use, server):
    folder, address, requests = server
    (folder / "toy.data").write_bytes(TOY)
    cache = use(_entry(f"{address}/toy.data"))
    data = fetch("toy")
    assert_array_equal(data.bags.instances, [[1, 2], [3, 4], [5, 6.5]])
    assert (data.y.tolist(), data.bags.bag_names.tolist()) == ([0, 1], ["a", "b"])
    assert data.bags.dtype == np.float32  # exact
    assert len(requests) == 1
    fetch("toy")
    assert len(requests) == 1
    assert [p.name for p in cache.rglob("*") if p.is_file()] == ["toy.data"]


def test_a_download_with_a_wrong_checksum_is_refused_and_not_kept(use, server):
    folder, address, _ = server
    (folder / "toy.data").write_bytes(TOY + b"c,c_1,1,1,1.\n")
    cache = use(_entry(f"{address}/toy.data"))
    with pytest.raises(BagFileError, match="is not the file that the registry knows"):
        fetch("toy")
    assert [p for p in cache.rglob("*") if p.is_file()] == []


def test_offline_and_absent(use):
    use(_entry())
    with pytest.raises(DatasetUnavailableError) as caught:
        fetch("toy")
    message = str(caught.value)
    assert message.startswith("The data set 'toy' is not on this machine (the download failed: ")
    assert "Put toy.npz into a folder and set BAGWISE_DATA to it, or go online once" in message


def test_a_missing_page(use, server):
    _, address, _ = server
    use(_entry(f"{address}/toy.data"))
    with pytest.raises(DatasetUnavailableError, match="the download failed: 404"):
        fetch("toy")


def test_downloads_off(use):
    cache = use(_entry())
    with pytest.raises(DatasetUnavailableError, match=r"not on this machine \(downloads are off\)"):
        fetch("toy", download=False)
    assert not cache.exists()


def test_without_pooch(use, monkeypatch):
    use(_entry())
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DatasetUnavailableError, match=r"pip install 'bagwise\[data\]'"):
        fetch("toy")


def test_a_set_without_address(monkeypatch, tmp_path):
    monkeypatch.delenv("BAGWISE_DATA", raising=False)
    with pytest.raises(DatasetUnavailableError) as caught:
        fetch("news_sci_med", data_home=tmp_path)
    assert str(caught.value) == (
        "The data set 'news_sci_med' is not on this machine. Put news_sci_med.npz into a folder "
        "and set BAGWISE_DATA to it. The original is inside a RAR archive, which cannot be read "
        "without a further program: there is no address to download from."
    )


def test_an_unwritable_cache(use, server, tmp_path):
    folder, address, _ = server
    (folder / "toy.data").write_bytes(TOY)
    use(_entry(f"{address}/toy.data"))
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DatasetUnavailableError, match="the download failed"):
        fetch("toy", data_home=tmp_path / "file")


def _store(path, **changes):
    arrays = {"X": np.eye(3)[:, :2], "offsets": [0, 2, 3], "y": np.array([0, 1])} | changes
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_lookup_order(use, tmp_path, monkeypatch):
    cache = use(_entry())
    sha256 = _store(cache / "toy.npz")
    use(_entry().replace("0" * 64, sha256))
    assert len(fetch("toy", download=False).bags) == 2  # the cache
    assert len(fetch("toy", data_home=cache, download=False).bags) == 2
    monkeypatch.setenv("BAGWISE_DATA", str(tmp_path / "data"))
    assert len(fetch("toy", download=False).bags) == 2  # no such folder: the cache
    _store(tmp_path / "data" / "toy.npz", y=np.array([1, 0]))
    with pytest.raises(BagFileError, match=r"data.toy.npz is not the toy.npz of the registry"):
        fetch("toy", download=False)  # first, and not what it should be


def test_counts_are_checked(use):
    cache = use(_entry())
    sha256 = _store(cache / "toy.npz", y=np.array([1, 1]))
    use(_entry(bags=3).replace("0" * 64, sha256))
    with pytest.raises(BagFileError) as caught:
        fetch("toy", download=False)
    assert str(caught.value) == (
        "The data set toy is not what the registry says: 2 bags, not 3; (0, 2) bags per label, "
        "not (1, 1)."
    )


def test_damaged_files(use):
    cache = use(_entry())
    cache.mkdir()
    (cache / "toy.npz").write_bytes(b"PK no zip")
    use(_entry().replace("0" * 64, hashlib.sha256(b"PK no zip").hexdigest()))
    with pytest.raises(BagFileError, match="this is no NPZ file"):
        fetch("toy", download=False)


def test_damaged_originals(use):
    cache = use(_entry())
    folder = cache / "originals" / "toy"
    folder.mkdir(parents=True)
    (folder / "toy.data").write_bytes(TOY[:-5])
    with pytest.raises(BagFileError, match=r"toy.data is not data/toy.data of the registry"):
        fetch("toy", download=False)
    for text, problem in ((b"a,a_1,1,x,0.\n", "x"), (b"a,1,1,0\na,2,1,1\n", "differ")):
        (folder / "toy.data").write_bytes(text)
        use(_entry(sha256=hashlib.sha256(text).hexdigest()))
        with pytest.raises(BagFileError, match=rf"not the original of toy \(.*{problem}"):
            fetch("toy", download=False)


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("linux", "XDG_CACHE_HOME", "bagwise"),
        ("win32", "LOCALAPPDATA", "bagwise"),
    ],
)
def test_cache_folder(platform, variable, expected, monkeypatch, tmp_path):
    monkeypatch.delenv("BAGWISE_CACHE", raising=False)
    monkeypatch.setattr(_fetch.sys, "platform", platform)
    monkeypatch.setenv(variable, str(tmp_path))
    assert cache_folder() == tmp_path / expected


def test_cache_folder_on_macos_and_by_choice(monkeypatch, tmp_path):
    monkeypatch.delenv("BAGWISE_CACHE", raising=False)
    monkeypatch.setattr(_fetch.sys, "platform", "darwin")
    assert cache_folder() == Path.home() / "Library" / "Caches" / "bagwise"
    monkeypatch.setenv("BAGWISE_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
