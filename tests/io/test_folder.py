"""Folders with one file a bag, their label tables, and the layouts of other tools."""

import logging

import numpy as np
import pytest

from bagwise.io import inspect, read


@pytest.fixture
def folder(tmp_path):
    """Make a folder of ``.npy`` bags."""

    def make(table=None, place=".", **bags):
        path = tmp_path / "set" / place
        path.mkdir(parents=True, exist_ok=True)
        for name, matrix in bags.items():
            np.save(path / f"{name}.npy", np.asarray(matrix))
        if table is not None:
            (tmp_path / "set" / "labels.csv").write_text(table)
        return tmp_path / "set"

    return make


def write_h5(path, **arrays):
    h5py = pytest.importorskip("h5py")
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array


def test_without_a_table(folder):
    path = folder(b=[[1.0]], a=[[2.0], [3.0]])
    bags = read(path)
    assert bags.bag_names.tolist() == ["a", "b"]
    assert bags.labels is None
    assert inspect(path).guessed["label_table"] == "none"


def test_order_and_labels_are_those_of_the_table(folder):
    bags = read(folder("file,label\nb.npy,yes\na,no\n", a=[[1.0]], b=[[2.0]], unlisted=[[3.0]]))
    assert bags.bag_names.tolist() == ["b", "a"]
    assert bags.labels.tolist() == ["yes", "no"]
    assert bags.instances.ravel().tolist() == [2, 1]


def test_lists_of_labels(folder):
    bags = read(folder("bag,labels\na,p;q\nb,\n", a=[[1.0]], b=[[2.0]]))
    assert bags.label_names.tolist() == ["p", "q"]
    assert bags.labels.tolist() == [[1, 1], [0, 0]]


def test_label_columns(folder):
    path = folder("id,p,q\na,1,0\nb,1,1\n", a=[[1.0]], b=[[2.0]])
    bags = read(path, bag="id", label=["q", "p"])
    assert bags.label_names.tolist() == ["q", "p"]
    assert bags.labels.tolist() == [[0, 1], [1, 1]]
    assert read(path, label=False).labels is None


def test_table_elsewhere(folder, tmp_path):
    path = folder("bag,label\na,0\n", a=[[1.0]])
    other = tmp_path / "elsewhere.tsv"
    other.write_text("bag\tlabel\na\t7\n")
    assert read(path, label_table=other).labels.tolist() == [7]
    assert read(path, label_table="labels.csv").labels.tolist() == [0]
    assert read(path, label_table=False).labels is None
    with pytest.raises(FileNotFoundError, match=r"nowhere\.csv does not exist"):
        read(path, label_table="nowhere.csv")


def test_table_lists_the_pictures(folder):
    assert read(folder("slide_id,label\na.svs,1\n", a=[[1.0]])).bag_names.tolist() == ["a.svs"]


def test_float32_and_leading_one(folder):
    bags = read(folder(a=np.ones((1, 3, 2), np.float32), b=np.ones((2, 2), np.float32)))
    assert bags.dtype == np.float32
    assert bags.sizes.tolist() == [3, 2]


def test_empty_bags(folder, fails, caplog):
    path = folder("bag,label\na,0\nb,1\nc,2\n", a=[[1.0]], b=np.zeros((0, 1)), c=[[2.0]])
    message = fails(path)
    assert "b.npy: the bag has no instance" in message
    assert "on_empty='skip'" in message
    with caplog.at_level(logging.INFO, logger="bagwise"):
        bags = read(path, on_empty="skip")
    assert "1 bags have no instance: b" in caplog.text
    assert bags.bag_names.tolist() == ["a", "c"]
    assert bags.labels.tolist() == [0, 2]


def test_all_bags_empty(folder, fails):
    assert "there is no bag in it" in fails(folder(a=np.zeros((0, 1))), on_empty="skip")


def test_missing_files(folder, fails):
    path = folder("bag,label\na,0\nz,1\nb,2\n", a=[[1.0]], b=[[2.0]])
    message = fails(path)
    assert "labels.csv:3: there is no file z.npy" in message
    assert "on_missing='skip'" in message
    found = read(path, on_missing="skip")
    assert found.bag_names.tolist() == ["a", "b"]
    assert found.labels.tolist() == [0, 2]
    path = folder("bag,label\nz,1\n", a=[[1.0]])
    assert "no bag of the label table has a file" in fails(path, on_missing="skip")


@pytest.mark.parametrize(
    "name", ["../a", "../../etc/passwd", "/etc/passwd", "x/../../a", "C:/a", "..\\a", "a\0"]
)
def test_table_must_not_lead_out(folder, fails, name):
    path = folder(f"bag,label\n{name},0\n", a=[[1.0]])
    np.save(path.parent / "a.npy", [[666.0]])
    assert "labels.csv:2" in fails(path)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "labels.csv: the label table is empty"),
        ("bag,label\n", "labels.csv: the label table has no row"),
        ("bag,label\na,1,2\n", "labels.csv:2: 2 columns are needed"),
        ("bag,label\na,1\na,2\n", "labels.csv:3: bag 'a' is there already, in line 2"),
        ("bag,label\na,\n", "labels.csv:2: the label is missing"),
        ("bag,label\n\nb,1\na,\n", "labels.csv:4: the label is missing"),
        ("bag,label\n,1\n", "labels.csv:2: '' does not name a file"),
        ("what,label\na,1\n", "labels.csv:1: no column names the files"),
        ("bag,truth\na,1\n", "labels.csv:1: no column holds the labels"),
        ("bag,y,label\na,1,2\n", "labels.csv:1: both 'y' and 'label' may be meant"),
    ],
)
def test_bad_tables(folder, fails, table, message):
    assert message in fails(folder(table, a=[[1.0]]))


def test_types_that_would_lose_digits_are_refused(folder, fails):
    single, double = np.ones((1, 2), np.float32), np.full((1, 2), 0.1)
    assert "'b') is float64, which does not fit" in fails(folder(a=single, b=double))
    kept = read(folder(a=double, b=single))  # the other way round nothing is lost
    assert kept.dtype == np.float64
    assert kept[0].tolist() == [[0.1, 0.1]]


def test_bad_bags(folder, fails):
    assert "b.npy: the bag has 2 features, those before it 1" in fails(
        folder(a=[[1.0]], b=[[1.0, 2.0]])
    )
    assert "b.npy: Instances must be finite" in fails(folder(b=[[np.nan]]))
    assert "b.npy: a bag is a matrix" in fails(folder(b=[1.0, 2.0]))
    assert "b.npy: a bag is a matrix" in fails(folder(b=[["x"]]))
    path = folder()
    (path / "b.npy").write_bytes(b"\x93NUMPY\x01\x00")
    assert "b.npy: this is not a .npy array" in fails(path)


def test_folders_without_bags(tmp_path, fails):
    (tmp_path / "readme.txt").write_text("nothing here")
    assert "there is no file of a bag in it" in fails(tmp_path)


def test_several_kinds_or_tables(folder, fails):
    path = folder(a=[[1.0]])
    (path / "x.csv").write_text("bag,label\na,1\n")
    assert read(path).labels.tolist() == [1]
    (path / "y.csv").write_text("bag,label\na,2\n")
    assert "several tables may hold the labels (x.csv, y.csv)" in fails(path)
    (path / "b.pt").write_bytes(b"")
    assert "must be of one kind. It has 1 .npy, 1 .pt" in fails(path, label_table=False)


# ---------------------------------------------------------------------------------------- presets


@pytest.mark.parametrize("start", [".", "20x_256px_0px_overlap/features_uni"])
@pytest.mark.parametrize("preset", [None, "trident"])
def test_trident(tmp_path, start, preset):
    job = tmp_path / "job"
    features = job / "20x_256px_0px_overlap" / "features_uni"
    for name, n in (("s1", 2), ("s2", 3)):
        write_h5(
            features / f"{name}.h5", features=np.full((n, 4), n, "f4"), coords=np.zeros((n, 2))
        )
    table = tmp_path / "cohort.csv"
    table.write_text("case_id,slide_id,label\nc,s2.svs,1\nc,s1.svs,0\n")
    bags = read(job / start, preset=preset, label_table=table)
    assert bags.sizes.tolist() == [3, 2]
    assert bags.labels.tolist() == [1, 0]
    assert bags.dtype == np.float32


def test_trident_with_several_encoders(tmp_path, fails):
    for encoder in ("uni", "conch"):
        folder = tmp_path / "20x_256px_0px_overlap" / f"features_{encoder}"
        write_h5(folder / "s.h5", features=np.ones((1, 1)))
    assert "read one of these folders" in fails(tmp_path)
    (tmp_path / "empty").mkdir()
    assert "as TRIDENT makes them" in fails(tmp_path / "empty", preset="trident")


def test_trident_slide_without_tissue(tmp_path, fails):
    folder = tmp_path / "features_uni"
    write_h5(folder / "s1.h5", features=np.zeros((0, 4)), coords=np.zeros((0, 2)))
    write_h5(folder / "s2.h5", features=np.ones((2, 4)), coords=np.zeros((2, 2)))
    assert "s1.h5: the bag has no instance" in fails(folder)
    assert read(folder, on_empty="skip").bag_names.tolist() == ["s2"]


def test_clam_prefers_h5(tmp_path):
    write_h5(tmp_path / "h5_files" / "s.h5", features=np.ones((2, 3)), coords=np.zeros((2, 2)))
    (tmp_path / "pt_files").mkdir()
    (tmp_path / "pt_files" / "s.pt").write_bytes(b"never read")
    (tmp_path / "process_list.csv").write_text("slide_id,label\ns,tumor\n")
    bags = read(tmp_path)
    assert bags.labels.tolist() == ["tumor"]
    assert inspect(tmp_path).guessed["preset"] == "clam"


def test_torchmil(folder):
    folder(place="features", a=[[1.0], [2.0]], b=[[3.0]])
    folder(place="labels", a=1, b=[0])
    path = folder(place="inst_labels", a=[0, 1], b=[[0]])
    bags = read(path)
    assert inspect(path).guessed["preset"] == "torchmil"
    assert bags.labels.tolist() == [1, 0]
    assert bags.instance_labels.tolist() == [0, 1, 0]


def test_torchmil_with_several_labels(folder):
    folder(place="features", a=[[1.0]], b=[[3.0]])
    assert read(folder(place="labels", a=[1, 0], b=[1, 1])).labels.tolist() == [[1, 0], [1, 1]]


def test_torchmil_with_gaps(folder, fails):
    folder(place="features", a=[[1.0]], b=[[3.0]])
    path = folder(place="labels", a=1)
    assert "labels/b.npy: the file is missing" in fails(path)
    folder(place="labels", b=np.zeros(0))
    assert "labels/b.npy: the label is missing" in fails(path)
    folder(place="labels", b=0)
    folder(place="inst_labels", a=[0, 1], b=[0])
    assert "a.npy: instance_labels must have 1 entries" in fails(path)
    assert "has a folder 'features'" in fails(path / "labels", preset="torchmil")


# --------------------------------------------------------------------------------------- h5 and pt


def test_h5_keys(tmp_path, fails):
    write_h5(tmp_path / "a.h5", only=np.ones((1, 2)))
    assert read(tmp_path).shape == (1, 2)
    write_h5(tmp_path / "a.h5", p=np.ones((1, 2)), q=np.ones((1, 3)))
    assert "there is no array 'features'; it has p, q. key= names one" in fails(tmp_path)
    assert read(tmp_path, key="q").shape == (1, 3)
    assert "there is no array 'z'" in fails(tmp_path, key="z")


def test_h5_must_keep_its_values(tmp_path, fails):
    h5py = pytest.importorskip("h5py")
    write_h5(tmp_path / "other" / "secret.h5", features=np.ones((1, 2)))
    path = tmp_path / "set" / "a.h5"
    path.parent.mkdir()

    def written(write):
        with h5py.File(path, "w") as file:
            write(file)
        return fails(path.parent)

    link = h5py.ExternalLink(str(tmp_path / "other" / "secret.h5"), "features")
    assert "is a link" in written(lambda file: file.__setitem__("features", link))
    assert "is a link" in written(lambda file: file.__setitem__("features", h5py.SoftLink("/x")))
    assert "is not an array" in written(lambda file: file.create_group("features"))
    outside = [(str(tmp_path / "raw"), 0, 16)]
    (tmp_path / "raw").write_bytes(bytes(16))
    assert "other files" in written(
        lambda file: file.create_dataset("features", (1, 2), "f8", external=outside)
    )
    layout = h5py.VirtualLayout((1, 2), "f8")
    layout[:] = h5py.VirtualSource(str(tmp_path / "other" / "secret.h5"), "features", (1, 2))
    assert "other files" in written(lambda file: file.create_virtual_dataset("features", layout))
    assert "must hold numbers" in written(lambda file: file.__setitem__("features", ["text"]))


def test_h5_that_promises_much(tmp_path, fails):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("features", (10**9, 10**3), "f8", chunks=(10, 10))
    assert "allow more with max_bytes" in fails(tmp_path)


def test_not_h5(tmp_path, fails):
    pytest.importorskip("h5py")
    (tmp_path / "a.h5").write_bytes(b"no")
    assert "a.h5: this is not an HDF5 file" in fails(tmp_path)


def test_tensors(tmp_path, fails):
    torch = pytest.importorskip("torch")
    torch.save(torch.ones(2, 3), tmp_path / "a.pt")
    torch.save({"features": torch.ones(1, 3, dtype=torch.bfloat16)}, tmp_path / "b.pt")
    assert read(tmp_path).sizes.tolist() == [2, 1]
    torch.save([1, 2], tmp_path / "c.pt")
    assert "c.pt: a tensor is needed" in fails(tmp_path)
    torch.save(logging.getLogger("x"), tmp_path / "c.pt")
    assert "c.pt: this is not a file of plain tensors" in fails(tmp_path)


def test_tensors_without_torch(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    (tmp_path / "a.pt").write_bytes(b"")
    with pytest.raises(ImportError, match="pip install torch"):
        read(tmp_path)
