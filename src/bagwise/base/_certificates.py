"""What an estimator says about how its fit ended."""

import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from bagwise.solvers import Certificate


def warn_unless_converged(estimator: Any, certificate: Certificate, advice: str) -> None:
    """Warn that the fit is not optimal, by how much, and what to change.

    Parameters
    ----------
    estimator : object
        Its class name is in the message.
    certificate : Certificate
        How the fit ended.
    advice : str
        What to change, as the end of the sentence "To converge, ...".
    """
    if certificate.converged:
        return
    failed = sum(not part.converged for part in certificate.parts)
    which = f" in {failed} of {len(certificate.parts)} problems" if failed else ""
    msg = (
        f"{type(estimator).__name__} did not converge{which} ({certificate.status}): after "
        f"{certificate.n_iter} iterations the optimality conditions are violated by "
        f"{certificate.residual:.2g} and the objective is within "
        f"{max(certificate.gap, 0.0):.2g} of the optimum. To converge, {advice}."
    )
    warnings.warn(msg, ConvergenceWarning, stacklevel=4)
