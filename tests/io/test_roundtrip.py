"""What we can write we read back equal: stores, and frames as CSV, Parquet and Arrow."""

import csv
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bagwise import Bags
from bagwise.io import _csv_quick, pack, read

pd = pytest.importorskip("pandas")

FINITE = st.floats(allow_nan=False, allow_infinity=False)
# pandas does not quote a lone carriage return, so no program could read it back.
NAME = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1, max_size=6).map(
    str.strip
)
COMMON = settings(
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@st.composite
def some_bags(draw):
    """Bags with names, and labels of any kind that a table can hold."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    n, width = sum(sizes), draw(st.integers(1, 3))
    values = draw(st.lists(FINITE, min_size=n * width, max_size=n * width))
    kinds = {
        "int": st.integers(-(2**40), 2**40),
        "text": st.sampled_from(["yes", "no", "may be", 'quote"', "new\nline"]),
        "bool": st.booleans(),
        "none": st.none(),
    }
    labels = draw(
        st.sampled_from(list(kinds)).flatmap(
            lambda kind: st.lists(kinds[kind], min_size=len(sizes), max_size=len(sizes))
        )
    )
    names = st.lists(NAME.filter(bool), min_size=len(sizes), max_size=len(sizes), unique=True)
    return Bags(
        np.array(values).reshape(n, width),
        np.append(0, np.cumsum(sizes)),
        bag_names=draw(names),
        labels=None if None in labels else labels,
        instance_labels=draw(st.none() | st.lists(st.integers(0, 3), min_size=n, max_size=n)),
        feature_names=[f"f{j}" for j in range(width)],
    )


@pytest.fixture(params=["exact", "quick"])
def way(request, monkeypatch):
    monkeypatch.setattr(_csv_quick, "_LEAST_BYTES", 10**9 if request.param == "exact" else 0)


@given(bags=some_bags())
@COMMON
def test_csv(way, assert_same, bags):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        bags.to_frame().to_csv(path, index=False, quoting=csv.QUOTE_MINIMAL)
        assert_same(read(path, label_separator=False), bags)
        assert_same(pack(path, Path(folder) / "t.bags", label_separator=False), bags)


@given(bags=some_bags(), seed=st.integers(0, 99))
@COMMON
def test_shuffled_csv_has_the_same_bags(assert_same, bags, seed):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        frame = bags.to_frame().sample(frac=1, random_state=seed)
        frame.to_csv(path, index=False)
        found = read(path, label_separator=False)
        assert_same(pack(path, Path(folder) / "t.bags", label_separator=False), found)
    expected = dict(zip(bags.bag_names.tolist(), bags, strict=True))
    for name, matrix in zip(found.bag_names.tolist(), found, strict=True):
        assert sorted(matrix.tolist()) == sorted(expected[name].tolist())


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
@given(bags=some_bags())
@COMMON
def test_arrow(assert_same, library, suffix, bags):
    pytest.importorskip("pyarrow")
    pytest.importorskip(library)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"t{suffix}"
        frame = bags.to_frame(library)
        if library == "pandas":
            frame.to_parquet(path) if suffix == ".parquet" else frame.to_feather(path)
        else:
            frame.write_parquet(path) if suffix == ".parquet" else frame.write_ipc(path)
        assert_same(read(path, label_separator=False), bags)


@given(bags=some_bags())
@COMMON
def test_store(assert_same, bags):
    with tempfile.TemporaryDirectory() as folder:
        bags.write(Path(folder) / "t.bags")
        assert_same(read(Path(folder) / "t.bags"), bags)
        assert_same(pack(Path(folder) / "t.bags", Path(folder) / "u.bags"), bags)


def test_matrix_of_labels(tmp_path, assert_same):
    bags = Bags(
        np.arange(6.0).reshape(3, 2),
        [0, 1, 3],
        bag_names=["a", "b"],
        labels=np.array([[0, 1], [1, 1]]),
        label_names=["cat", "dog"],
        feature_names=["u", "v"],
    )
    bags.to_frame().to_csv(tmp_path / "t.csv", index=False)
    assert_same(read(tmp_path / "t.csv", label=["cat", "dog"]), bags)
