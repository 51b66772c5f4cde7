"""
Where the margins lie
=====================

The margin of a bag is its score, times -1 if the bag is negative: how safely it is on the right
side. A support vector machine asks that no margin be small. An optimal margin distribution machine
asks that all of them be close to 1, so that the mean is large and the variance small (Zhang and Jin
2020). This page shows both kinds of margins.
"""

# %%
# Bags of digits: those with a 9 are positive, and that image is the key instance. `MISVM` and
# `MIODM` choose one image of each positive bag; one asks for margins of at least 1, the other for
# margins in a band around 1. ``nu`` says what margins beyond the band cost.

import matplotlib.pyplot as plt
import numpy as np

from bagwise.datasets import load_digit_bags
from bagwise.metrics import key_instance_success_rate, margin_distribution
from bagwise.svm import MIODM, MISVM

train = load_digit_bags(120, target=9, images="train")
test = load_digit_bags(120, target=9, images="test")
models = {
    "MISVM": MISVM(),
    "MIODM": MIODM(random_state=0),
    "MIODM, nu=1": MIODM(nu=1.0, random_state=0),
}

# %%
# Mean and spread (standard deviation over mean) of the margins of test bags, the share of bags with
# the right label and the share of positive bags in which the right image is found.

margins = {}
for name, model in models.items():
    model.fit(train.bags, train.y)
    found = margin_distribution(test.y, model.decision_function(test.bags))
    margins[name] = found.margins
    keys = key_instance_success_rate(
        test.instance_y == test.target, model.key_instances(test.bags), test.bags.offsets
    )
    print(
        f"{name:12} mean {found.mean:.2f}, spread {found.relative_spread:.2f}, "
        f"right labels {np.mean(found.margins > 0):.0%}, key instances {keys:.0%}"
    )

# %%
# The distribution of the margins: the share of test bags with a margin of at most this. The steeper
# a line, the closer the margins lie together; what is left of 0 is labelled wrongly.

fig, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for name, values in margins.items():
    axis.step(
        np.sort(values), np.arange(1, len(values) + 1) / len(values), where="post", label=name
    )
axis.axvline(0.0, color="0.7", linewidth=1)
axis.set(xlabel="margin", ylabel="share of test bags", ylim=(0, 1))
axis.legend()
plt.show()
