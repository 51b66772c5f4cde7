"""
One vector is enough, if it stands in the right place
=====================================================

SparseMI learns where its expansion vectors stand together with the classifier. The two problems are
those of Figure 1 of its paper, the curves those of Figure 2.
"""

# %%
# In the first problem negative bags have all of their points on a ring; positive ones have a point
# in its middle. One vector is allowed. In the second problem there are four clouds: bags of the
# first class have a point in the upper left one, bags of the second in the lower right one, bags of
# the third in neither. Two vectors are allowed, and three classifiers share them. All vectors start
# in a bad place (circles).

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from bagwise import Bags
from bagwise.datasets import load_digit_bags, make_ring_bags, make_three_class_bags
from bagwise.svm import RandomSetSVM, SparseMI

ring = make_ring_bags(100, random_state=0)
clouds = make_three_class_bags(150, random_state=0)
problems = [
    (ring, SparseMI(1, C=10.0, gamma=0.2, init=[[2.0, -1.2]])),
    (clouds, SparseMI(2, C=10.0, gamma=0.5, init=[[0.5, 1.5], [1.0, 0.5]])),
]


def stages(data, model):
    """Return the model with the vectors at the start, after one iteration and at the end."""
    start = RandomSetSVM(
        n_vectors=model.n_vectors, C=model.C, gamma=model.gamma, init=model.init
    ).fit(data.bags, data.y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        first = SparseMI(**{**model.get_params(), "max_iter": 1}).fit(data.bags, data.y)
    return {"start": start, "one iteration": first, "end": model.fit(data.bags, data.y)}


# %%
# The shade of a place is the class of a bag that has one point, there. The vectors (stars) move to
# where they are needed, and the objective falls at every step. Not from everywhere: a vector that
# starts on the ring itself walks out of it. With few vectors SparseMI therefore makes several
# starts, unless it is told where.

fig, axes = plt.subplots(2, 4, figsize=(12, 6), layout="constrained")
for (data, model), row in zip(problems, axes, strict=True):
    points = data.bags.instances
    reach = np.abs(points).max() * 1.05
    ticks = np.linspace(-reach, reach, 120)
    places = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    alone = Bags(places, np.arange(len(places) + 1))
    owner = np.repeat(data.y, data.bags.sizes)
    for (title, stage), axis in zip(stages(data, model).items(), row[:3], strict=True):
        shade = np.searchsorted(stage.classes_, stage.predict(alone)).reshape(120, 120)
        axis.pcolormesh(ticks, ticks, shade, cmap="Pastel1", vmin=0, vmax=8)
        for label, mark in zip(stage.classes_, ".x+", strict=False):
            axis.plot(*points[owner == label].T, mark, markersize=3, color="0.4")
        axis.plot(*np.array(model.init).T, "o", markersize=9, markerfacecolor="none", color="black")
        axis.plot(*stage.expansion_vectors_.T, "*", markersize=13, color="tab:red")
        accuracy = stage.score(data.bags, data.y)
        axis.set(title=f"{title}: accuracy {accuracy:.2f}", xticks=[], yticks=[], aspect="equal")
    row[3].plot(model.result_.history, color="black")
    row[3].set(title="objective", xlabel="iteration", ylim=(0, None))
plt.show()

# %%
# On real images: bags of handwritten digits, of which the positive ones hold a 3. Ten vectors
# start at instances that are drawn at random. The objective never rises, and the accuracy on bags
# that were not used for training follows it.

digits = load_digit_bags(n_bags=650, random_state=0)
train, test = np.arange(150), np.arange(150, 650)
curves = []
for n_iterations in range(1, 31):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SparseMI(10, C=10.0, max_iter=n_iterations, random_state=0)
        model.fit(digits.bags[train], digits.y[train])
    curves.append((model.result_.objective, model.score(digits.bags[test], digits.y[test])))

objective, accuracy = np.transpose(curves)
fig, left = plt.subplots(figsize=(6, 4), layout="constrained")
right = left.twinx()
left.plot(range(1, 31), objective, color="black")
right.plot(range(1, 31), accuracy, "--", color="tab:red")
left.set(xlabel="iterations", ylabel="objective", ylim=(0, None))
right.set_ylabel("accuracy on other bags (dashed)", color="tab:red")
plt.show()
