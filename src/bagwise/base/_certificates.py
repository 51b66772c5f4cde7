"""What an estimator says about how its fit ended."""

from math import isfinite
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from bagwise._warnings import warn
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
    known = []
    if isfinite(certificate.residual):
        known.append(f"the optimality conditions are violated by {certificate.residual:.2g}")
    if isfinite(certificate.gap):
        known.append(f"the objective is within {max(certificate.gap, 0.0):.2g} of the optimum")
    done = f"after {certificate.n_iter} iterations"
    quality = f": {done} {' and '.join(known)}" if known else f" {done}"
    msg = (
        f"{type(estimator).__name__} did not converge{which} ({certificate.status}){quality}. "
        f"To converge, {advice}."
    )
    warn(msg, ConvergenceWarning)
