"""
Four ideas of a positive bag
============================

Bags of points in the plane, and four methods that learn from the labels of bags only. What they
make of single points shows what they assume.
"""

# %%
# Negative bags have all of their points on a wide ring, in positive bags one or more lie in its
# middle. C and gamma are chosen by 5-fold cross-validation on the 100 training bags; the accuracy
# is that on 400 bags drawn anew.

import matplotlib.pyplot as plt
import numpy as np

from bagwise import Bags
from bagwise.datasets import make_ring_bags
from bagwise.embedding import MILES
from bagwise.model_selection import BagGridSearchCV
from bagwise.svm import MISVM, SIL, MIKernelSVM

train = make_ring_bags(100, width=0.9, random_state=0)
test = make_ring_bags(400, width=0.9, random_state=1)
grid = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": ["0.25*median", "1*median", "4*median"]}
models = []
for estimator in (SIL(), MISVM(), MIKernelSVM(), MILES()):
    search = BagGridSearchCV(estimator, grid, cv=5).fit(train.bags, train.y)
    models.append(search.best_estimator_)
    accuracy = search.score(test.bags, test.y)
    print(f"{type(estimator).__name__:12} {search.best_params_}: accuracy {accuracy:.2f}")

# %%
# The colour of a place is the score of a bag that has one point, there; the line is where it is 0.
# Points of positive bags are red; filled are their key instances, those that decide for the
# predicted class. SIL takes all red points for positive, and its region is too wide. MISVM looks
# for one point of each positive bag. MIKernelSVM takes the mean over a bag, so that points on the
# ring may outweigh one in the middle. MILES asks how near a bag comes to a few of the points. Where
# the last two call a positive bag negative, a point on the ring decides.

points = train.bags.instances
positive = np.repeat(train.y == 1, train.bags.sizes)
ticks = np.linspace(np.abs(points).max() * -1.05, np.abs(points).max() * 1.05, 80)
places = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
alone = Bags(places, np.arange(len(places) + 1))

fig, axes = plt.subplots(2, 2, figsize=(7, 7), layout="constrained")
for model, axis in zip(models, axes.flat, strict=True):
    scores = model.decision_function(alone).reshape(80, 80)
    limit = np.abs(scores).max()
    axis.pcolormesh(ticks, ticks, scores, cmap="RdBu_r", vmin=-limit, vmax=limit, alpha=0.5)
    axis.contour(ticks, ticks, scores, levels=[0.0], colors="black", linewidths=1)
    axis.plot(*points[~positive].T, "o", markersize=3, markerfacecolor="none", color="tab:blue")
    axis.plot(*points[positive].T, "o", markersize=3, markerfacecolor="none", color="tab:red")
    keys = train.bags.offsets[:-1] + model.key_instances(train.bags)
    axis.plot(*points[keys[train.y == 1]].T, "o", markersize=3, color="tab:red")
    axis.set(title=type(model).__name__, xticks=[], yticks=[], aspect="equal")
plt.show()
