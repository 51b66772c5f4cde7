"""A method in a few words."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Summary:
    """What a method assumes, minimises and costs: its row in the table of all estimators.

    Every public estimator has one of its own, as the class attribute ``_summary``. What tags say is
    not repeated here.

    Parameters
    ----------
    assumption : str
        What it takes for granted about bags and their labels.
    objective : str
        What it minimises, beside a norm of weights; "none" if it does not.
    cost : str
        What a fit costs, with N instances, m bags and d features, by default parameters.
    """

    assumption: str
    objective: str
    cost: str
