"""
Name the digits
===============

Each bag is a handful of handwritten digits with the list of the digits inside, like a photograph
with the names of its caption. Which image is which nobody says. We learn a metric from the lists,
name the images of the training bags, and then annotate new bags.
"""

# %%
# The images of the training bags and of the test bags are different ones. `MIMLCA` gives each label
# of a list to one image of its bag at most.

import matplotlib.pyplot as plt
import numpy as np

from bagwise.datasets import load_digit_bags
from bagwise.density import EMDD
from bagwise.embedding import MILES, MInD
from bagwise.ensemble import MILBoost
from bagwise.metric import MIMLCA
from bagwise.metrics import average_precision, coverage, one_error
from bagwise.neighbors import CitationKNN
from bagwise.svm import MinimaxKernelSVM, miSVM

train = load_digit_bags(150, multilabel=True, images="train")
test = load_digit_bags(150, multilabel=True, images="test")

learner = MIMLCA(center=True, ridge=0.01).fit(train.bags, train.y)
named = learner.assignments_ >= 0
right = learner.assignments_ == train.instance_y
lists = np.repeat(train.y.sum(axis=1), train.bags.sizes)
print(f"{named.mean():.0%} of the training images are named, {right[named].mean():.0%} rightly;")
print(f"a label drawn from the list is right for {(1 / lists[named]).mean():.0%}")

# %%
# New bags are annotated by the nearest training bags, under the pixels' own distance and under the
# learned one. The bags hold four to eight images, so most of the labels come late in any ranking.
# Beside them are methods that learn each label against the rest. The page on
# :doc:`annotation </user_guide/annotation>` has all of these on four other sets of bags.

models = {
    "neighbours by pixels": CitationKNN(20, 20, distance="average"),
    "by the learned metric": CitationKNN(20, 20, distance="average", metric=learner),
    "MILES": MILES(),
    "miSVM": miSVM(random_state=0),
    "MILBoost": MILBoost(),
    "EMDD": EMDD(),
    "MInD": MInD(),
    "MinimaxKernelSVM": MinimaxKernelSVM(),
}
print(f"{'':>22} one-error  coverage  average precision")
for name, model in models.items():
    ranks = model.fit(train.bags, train.y).decision_function(test.bags)
    scores = [rule(test.y, ranks) for rule in (one_error, coverage, average_precision)]
    print(f"{name:>22} {scores[0]:9.2f} {scores[1]:9.2f} {scores[2]:18.2f}")

# %%
# Six training bags with their lists, and what the images were called; wrong names are red, and
# images without a name are grey.

fig, axes = plt.subplots(6, train.bags.sizes.max(), figsize=(8, 7), layout="constrained")
for bag, row in enumerate(axes):
    first, size = train.bags.offsets[bag], train.bags.sizes[bag]
    for place, axis in enumerate(row):
        axis.set_axis_off()
        if place >= size:
            continue
        image = train.bags[bag][place].reshape(8, 8)
        label = learner.assignments_[first + place]
        axis.imshow(image, cmap="gray_r", alpha=1.0 if label >= 0 else 0.3)
        color = "black" if right[first + place] else "red"
        axis.set_title("" if label < 0 else str(label), color=color, fontsize=10)
    row[0].text(
        -0.6, 0.5, "list:\n" + " ".join(map(str, np.flatnonzero(train.y[bag]))),
        transform=row[0].transAxes, ha="right", va="center",
    )  # fmt: skip
plt.show()
