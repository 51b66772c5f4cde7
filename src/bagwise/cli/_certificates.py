"""How a fit ended, in words and as JSON."""

from typing import TYPE_CHECKING, Any

from bagwise.cli._output import number

if TYPE_CHECKING:
    from bagwise.solvers import Certificate


def certificate_text(result: "Certificate | None") -> str:
    """Return the certificate in a line."""
    if result is None:
        return "none"
    gap = number(result.gap)
    parts = [str(result.status), f"objective {result.objective:.6g}"]
    if gap is not None:
        parts.append(f"at most {gap:.0e} above the optimum" if gap > 0 else "at the optimum")
    if result.starts_text:
        parts.append(result.starts_text)
    steps = "iteration" if result.n_iter == 1 else "iterations"
    parts.append(f"{result.n_iter:,} {steps}, {result.solve_time:.2g} s")
    return ", ".join(parts)


def certificate_json(result: "Certificate | None") -> dict[str, Any] | None:
    """Return the certificate as JSON has it."""
    if result is None:
        return None
    return {
        "status": str(result.status),
        "objective": number(result.objective),
        "lower_bound": number(result.lower_bound),
        "gap": number(result.gap),
        "n_iter": result.n_iter,
        "n_starts": result.n_starts,
        "spread": number(result.spread),
        "solve_seconds": result.solve_time,
    }
