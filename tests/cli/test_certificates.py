"""How a fit ended, in words."""

import numpy as np
import pytest

from bagwise.cli._certificates import certificate_text
from bagwise.solvers import Certificate, Status


def ended(*ends):
    return Certificate(objective=min(ends), status=Status.CONVERGED, n_iter=3, ends=np.array(ends))


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (ended(1639.5, 14.2625), "best of 2 starts, which ended between 14.2625 and 1639.5, "),
        (ended(0.125, 0.125 + 1e-12, 0.125), "best of 3 starts, which ended at 0.125, "),
        (
            Certificate(
                objective=3.0,
                status=Status.CONVERGED,
                n_iter=6,
                parts=(ended(1.0, 2.5), ended(2.0, 5.0)),
            ),
            "best of 2 starts, which ended between 3 and 7.5, ",
        ),
    ],
)
def test_starts_are_told_by_their_objectives(result, words):
    assert words in certificate_text(result)


def test_one_start_is_not_told():
    assert "start" not in certificate_text(
        Certificate(objective=1.0, status=Status.CONVERGED, n_iter=3)
    )
