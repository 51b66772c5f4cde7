"""The same three bags in every format."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import io as scipy_io

from bagwise import Bags

X = np.array([[0.5, -1.0], [2.0, 3.25], [1e-3, 4.0], [7.0, 8.5], [-9.0, 0.0], [1.5, 2.5]])
OFFSETS = [0, 2, 3, 6]
NAMES = ["a", "b", "c"]
LABELS = [1, 0, 1]
FEATURES = ["u", "v"]


def rows():
    for name, label, matrix in zip(NAMES, LABELS, bag_matrices(), strict=True):
        for row in matrix.tolist():
            yield name, label, row


def bag_matrices():
    return [X[start:stop] for start, stop in pairwise(OFFSETS)]


def write_csv(folder, name="toy.csv", separator=","):
    lines = [separator.join(["bag", "label", *FEATURES])]
    lines += [separator.join([bag, str(y), *map(repr, x)]) for bag, y, x in rows()]
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def write_parquet(folder):
    pq = pytest.importorskip("pyarrow.parquet")
    path = folder / "toy.parquet"
    pq.write_table(arrow_table(), path)
    return path


def arrow_table():
    import pyarrow as pa

    bags, labels, x = zip(*rows(), strict=True)
    u, v = zip(*x, strict=True)
    return pa.table({"bag": bags, "label": labels, "u": u, "v": v})


def nested_table():
    import pyarrow as pa

    vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 2)
    lists = pa.ListArray.from_arrays(pa.array(OFFSETS, pa.int32()), vectors)
    return pa.table({"bag": NAMES, "label": LABELS, "instances": lists})


def write_nested(folder):
    pq = pytest.importorskip("pyarrow.parquet")
    path = folder / "nested.parquet"
    pq.write_table(nested_table(), path)
    return path


def write_arrow(folder):
    feather = pytest.importorskip("pyarrow.feather")
    path = folder / "toy.arrow"
    feather.write_feather(nested_table(), path, compression="uncompressed")
    return path


def write_feather(folder):
    feather = pytest.importorskip("pyarrow.feather")
    path = folder / "toy.feather"
    feather.write_feather(arrow_table(), path, compression="lz4")
    return path


def write_npz(folder):
    path = folder / "toy.npz"
    np.savez_compressed(path, X=X, offsets=OFFSETS, y=LABELS, bag_names=NAMES)
    return path


def write_relational(folder):
    text = "@relation toy\n@attribute bag-id {a,b,c}\n@attribute bag relational\n"
    text += "  @attribute u numeric\n  @attribute v real\n@end bag\n@attribute class {0,1}\n@data\n"
    for name, label, matrix in zip(NAMES, LABELS, bag_matrices(), strict=True):
        inner = "\\n".join(",".join(map(repr, row)) for row in matrix.tolist())
        text += f'{name},"{inner}",{label}\n'
    path = folder / "relational.arff"
    path.write_text(text)
    return path


def write_flat_arff(folder):
    text = "% flat\n@RELATION toy\n@ATTRIBUTE bag STRING\n@ATTRIBUTE u NUMERIC\n"
    text += "@ATTRIBUTE 'v' REAL\n@ATTRIBUTE class {0,1}\n@DATA\n"
    text += "".join(f"'{bag}',{x[0]!r},{x[1]!r},{y}\n" for bag, y, x in rows())
    path = folder / "flat.arff"
    path.write_text(text)
    return path


def write_c45(folder):
    path = folder / "toy.data"
    path.write_text(
        "".join(f"{bag},i{i},{x[0]!r},{x[1]!r},{y}.\n" for i, (bag, y, x) in enumerate(rows()))
    )
    return path


def write_svmlight(folder):
    path = folder / "toy.svm"
    path.write_text("".join(f"{y} qid:{bag} 1:{x[0]!r} 2:{x[1]!r}\n" for bag, y, x in rows()))
    return path


def cell(items):
    column = np.empty((len(items), 1), dtype=object)
    for i, item in enumerate(items):
        column[i, 0] = item
    return column


def write_mat(folder, **options):
    path = folder / "toy.mat"
    content = {"bags": cell(bag_matrices()), "labels": np.array(LABELS, dtype=float)[:, None]}
    scipy_io.savemat(path, content, **options)
    return path


def write_store(folder):
    path = folder / "toy.bags"
    Bags(X, OFFSETS, bag_names=NAMES, labels=LABELS, feature_names=FEATURES).write(path)
    return path


def write_folder(folder):
    path = folder / "one_file_a_bag"
    path.mkdir()
    for name, matrix in zip(NAMES, bag_matrices(), strict=True):
        np.save(path / f"{name}.npy", matrix)
    (path / "labels.csv").write_text("bag,label\na,1\nb,0\nc,1\n")
    return path


def write_h5_folder(folder):
    h5py = pytest.importorskip("h5py")
    path = folder / "h5_folder"
    path.mkdir()
    for name, matrix in zip(NAMES, bag_matrices(), strict=True):
        with h5py.File(path / f"{name}.h5", "w") as file:
            file["features"], file["coords"] = matrix, np.zeros((len(matrix), 2), int)
    (path / "labels.csv").write_text("slide_id,label\na,1\nb,0\nc,1\n")
    return path


WRITERS = {
    "csv": write_csv,
    "tsv": lambda folder: write_csv(folder, "toy.tsv", "\t"),
    "parquet": write_parquet,
    "nested": write_nested,
    "arrow": write_arrow,
    "feather": write_feather,
    "npz": write_npz,
    "relational": write_relational,
    "flat_arff": write_flat_arff,
    "c45": write_c45,
    "svmlight": write_svmlight,
    "mat": write_mat,
    "mat_compressed": lambda folder: write_mat(folder, do_compression=True),
    "store": write_store,
    "folder": write_folder,
    "h5_folder": write_h5_folder,
}


@pytest.fixture(params=sorted(WRITERS))
def sample(request, tmp_path):
    """Name and path of the toy data in one of the formats."""
    return request.param, WRITERS[request.param](tmp_path)


@pytest.fixture
def write(tmp_path):
    """Write the toy data in a format by its name here."""
    return lambda name: WRITERS[name](tmp_path)


@pytest.fixture
def assert_toy():
    def check(bags, *, named=True):
        instances = bags.instances.toarray() if bags.is_sparse else bags.instances
        np.testing.assert_array_equal(instances, X)
        assert bags.offsets.tolist() == OFFSETS
        assert bags.labels.tolist() == LABELS
        assert bags.labels.dtype.kind == "i"
        assert bags.bag_names.tolist() == NAMES if named else bags.bag_names is None

    return check


@pytest.fixture
def assert_same():
    """Two `Bags` hold the same, names and labels included."""

    def check(one, other):
        def dense(bags):
            return bags.instances.toarray() if bags.is_sparse else bags.instances

        np.testing.assert_array_equal(dense(one), dense(other))
        for what in ("offsets", "labels", "bag_names", "instance_names", "instance_labels",
                     "feature_names", "label_names"):  # fmt: skip
            mine, others = getattr(one, what), getattr(other, what)
            assert (mine is None) == (others is None), what
            if mine is not None:
                np.testing.assert_array_equal(mine, others, err_msg=what)

    return check


@pytest.fixture
def fails():
    """Return the message of the one error that readers raise."""
    from bagwise.exceptions import BagFileError
    from bagwise.io import read

    def check(path, **options):
        with pytest.raises(BagFileError) as caught:
            read(path, **options)
        return str(caught.value)

    return check
