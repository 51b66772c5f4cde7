import hashlib

import numpy as np
from scipy import sparse

import bagwise
from bagwise import Bags
from bagwise.inspection._provenance import data_digest, package_versions


def test_digest_by_hand():
    bags = Bags(np.array([[1.0], [2.0]]), [0, 2])
    parts = (
        b"<i8(2,);" + np.array([0, 2]).tobytes(),
        b"<f8(2, 1);" + np.array([1.0, 2.0]).tobytes(),
        b"<i8(1,);" + np.array([1]).tobytes(),
    )
    assert data_digest(bags, [1]) == hashlib.sha256(b"".join(parts)).hexdigest()


def test_digest_sees_every_part_but_names():
    values = np.arange(6.0).reshape(3, 2)
    digests = [
        data_digest(Bags(values, [0, 1, 3]), [0, 1]),
        data_digest(Bags(values, [0, 2, 3]), [0, 1]),
        data_digest(Bags(values + 1, [0, 1, 3]), [0, 1]),
        data_digest(Bags(values, [0, 1, 3]), [1, 1]),
        data_digest(Bags(values, [0, 1, 3]), ["a", "b"]),
        data_digest(Bags(values, [0, 1, 3])),
        data_digest(Bags(sparse.csr_array(values), [0, 1, 3]), [0, 1]),
    ]
    assert len(set(digests)) == len(digests)
    assert data_digest(Bags(values, [0, 1, 3], bag_names=["x", "y"]), [0, 1]) == digests[0]


def test_selection_has_the_digest_of_its_bags():
    bags = Bags(np.arange(4.0)[:, None], [0, 1, 3, 4])
    assert data_digest(bags[[2, 0]]) == data_digest(Bags([[3.0], [0.0]], [0, 1, 2]))


def test_versions():
    versions = package_versions()
    assert versions["bagwise"] == bagwise.__version__
    assert versions["numpy"] == np.__version__
