"""Write the page with the table of all estimators, from what each class declares.

    python docs/estimators_table.py

`make docs` runs it. The words are the ``_summary`` of each class, the rest its tags.
"""

from pathlib import Path

from sklearn.utils import get_tags

import bagwise
from bagwise.base import get_bag_tags

PAGE = Path(__file__).parent / "user_guide" / "all_estimators.md"
HEAD = """# All estimators

What each class assumes about bags, what it minimises, and what a fit costs with $N$ instances, $m$
bags and $d$ features, with default parameters. [Choosing a method](methods.md) compares them in
prose and with formulas.

- *Instance scores*: it has `instance_decision_function` and `key_instances`.
- *Several classes*, *label lists*: it learns from more than two classes, from lists of labels.
- *Sparse*: it takes sparse matrices.
- *Asymmetric*: one of two classes is the positive one, `pos_label`.

`python docs/estimators_table.py` makes this page from what the classes declare.
"""
COLUMNS = (
    *("class", "in", "assumption", "minimises", "cost", "instance scores", "several classes"),
    *("label lists", "sparse", "asymmetric"),
)
MISSING = """{name} declares no summary. Add to the class, below its docstring:

    _summary: ClassVar[Summary] = Summary(
        assumption="what it takes for granted about bags and their labels",
        objective="what it minimises",
        cost="what a fit costs",
    )

with `from bagwise.base import Summary`, and run `python docs/estimators_table.py`."""


def summary_of(cls):
    """Return the words that a class declares itself; those of a parent do not count."""
    if "_summary" not in vars(cls):
        raise LookupError(MISSING.format(name=cls.__name__))
    return cls._summary


def row(cls):
    """Return the cells of an estimator."""
    model, words = cls(), summary_of(cls)
    tags, bag_tags = get_tags(model), get_bag_tags(model)
    labels = tags.classifier_tags
    facts = [bag_tags.instance_scores]
    facts += [None, None] if labels is None else [labels.multi_class, labels.multi_label]
    facts += [tags.input_tags.sparse, None if labels is None else bag_tags.asymmetric]
    package = cls.__module__.split(".")[1]
    yes_or_no = [{True: "yes", False: "no", None: ""}[fact] for fact in facts]
    return [f"`{cls.__name__}`", package, words.assumption, words.objective, words.cost, *yes_or_no]


def page():
    """Return the text of the page."""
    rows = sorted((row(cls) for _, cls in bagwise.all_estimators()), key=lambda cells: cells[1])
    table = [COLUMNS, ("---",) * len(COLUMNS), *rows]
    return HEAD + "\n" + "\n".join(f"| {' | '.join(cells)} |" for cells in table) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
