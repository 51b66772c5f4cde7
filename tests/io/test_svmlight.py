"""svmlight lines with bag ids."""

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from bagwise.io import read


@pytest.fixture
def svm(tmp_path):
    def make(text):
        path = tmp_path / "t.svm"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return make


def test_what_scikit_learn_writes(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 7)) * (rng.random((50, 7)) < 0.4)
    X[0, -1] = 1.0
    ids = np.sort(rng.integers(0, 12, 50))
    dump_svmlight_file(X, ids % 2, str(tmp_path / "t.svm"), query_id=ids, zero_based=False)
    bags = read(tmp_path / "t.svm")
    assert bags.is_sparse
    np.testing.assert_allclose(bags.instances.toarray(), X, rtol=1e-14)
    np.testing.assert_array_equal(bags.bag_names, np.unique(ids).astype(str))
    np.testing.assert_array_equal(bags.labels, np.unique(ids) % 2)


@pytest.mark.parametrize("block", [1, 2, 100])
def test_width_is_that_of_the_widest_row(svm, block, monkeypatch):
    monkeypatch.setattr("bagwise.io._svmlight._BLOCK_ROWS", block)
    bags = read(svm("+1 qid:a 1:0.5\n-1 qid:b 4:2 # comment\n# all of it\n+1 qid:a\n"))
    assert bags.instances.toarray().tolist() == [[0.5, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 2]]
    assert bags.labels.tolist() == [1, -1]


def test_zero_based(svm):
    path = svm("1 qid:a 0:3 1:4\n")
    assert read(path, zero_based=True).instances.toarray().tolist() == [[3, 4]]


def test_lists_of_labels(svm):
    bags = read(svm("1,3 qid:a 1:1\n3 qid:b 1:1\n"))
    assert bags.label_names.tolist() == ["1", "3"]
    assert bags.labels.tolist() == [[1, 1], [0, 1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t.svm: the file is empty"),
        ("# nothing\n", "t.svm: the file is empty"),
        ("1 1:2\n", "t.svm:1: the bag is needed after the label, as qid:NAME. Got '1:2'"),
        ("1\n", "t.svm:1: the bag is needed after the label, as qid:NAME. Got nothing"),
        ("1 qid:a 1:2\n1 qid:a 1:x\n", "t.svm:2: index:value is needed. Got '1:x'"),
        ("1 qid:a 1:nan\n", "t.svm:1: index:value is needed. Got '1:nan'"),
        ("1 qid:a x\n", "t.svm:1: index:value is needed. Got 'x'"),
        ("1 qid:a -1:2\n", "t.svm:1: index:value is needed. Got '-1:2'"),
        ("1 qid:a 0:2\n", "t.svm:1: indices begin with 1"),
        ("1 qid:a 2:2 2:3\n", "t.svm:1: indices must rise from 1. Got 2 after 2"),
        ("1 qid:a 9999999999:1\n", "t.svm:1: indices must rise"),
        ("1 qid:a 1:1\n0 qid:a 1:1\n", "t.svm:2: labels must not differ inside a bag: bag 'a'"),
        (b"1 qid:a 1:1\n\xff\xfe qid:a 1:1\n", "this is not text"),
    ],
)
def test_errors_name_the_line(svm, fails, text, message):
    assert message in fails(svm(text))
