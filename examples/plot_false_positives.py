"""
The waterfall and the mist
==========================

In pictures of waterfalls there is mist at the foot of the fall, and nowhere else in the training
pictures. A learner that needs only one good patch in each picture of a waterfall has no reason to
tell the two apart, and takes a cloud, which looks like mist, for a waterfall. PCSVM asks that the
patches of a positive picture lie far apart along the weight vector (Han, Tao and Wang 2010, figure
1). That helps if what differs most inside positive bags is waterfall and mist, and it harms if it
is something else.
"""

# %%
# Key instances are the waterfall, distractors the mist, which is somewhat like it. Four of five
# pictures with a waterfall have mist. No negative training bag has a distractor; every negative
# test bag has: those are the clouds. There are two kinds of pictures. In the first the mist is
# everything beside the waterfall, in the second it is one patch among background.

import matplotlib.pyplot as plt
import numpy as np

from bagwise import Bags
from bagwise.datasets import make_key_instance_bags
from bagwise.svm import MISVM, PCSVM

SETTINGS = {"full of mist": None, "a patch of mist": 1}


def draw(n_distractors, seed, clouds):
    return make_key_instance_bags(
        100, n_features=2, separation=8.0, distractor_separation=8.0, distractor_cosine=0.6,
        distractor_share=0.8, n_distractors=n_distractors, negative_distractor_share=clouds,
        random_state=seed,
    )  # fmt: skip


def models():
    plain = MISVM(C=10.0, kernel="linear")
    return plain, PCSVM(C=10.0, kernel="linear", spread=0.25, penalty=1.0)


# %%
# How many clouds are called waterfalls, and how many waterfalls are missed? Means over ten draws.
# No cross-validation on the training bags could have told the models apart: there are no clouds
# among them, and both label them without an error, or nearly so.

for setting, n_distractors in SETTINGS.items():
    for k in range(2):
        counts = []
        for seed in range(10):
            train, test = draw(n_distractors, seed, 0.0), draw(n_distractors, 100 + seed, 1.0)
            model = models()[k].fit(train.bags, train.y)
            wrong = model.predict(test.bags) != test.y
            errors = model.predict(train.bags) != train.y
            counts.append([wrong[test.y == 0].mean(), wrong[test.y == 1].mean(), errors.mean()])
        clouds, missed, errors = np.mean(counts, axis=0)
        print(
            f"{setting:16} {type(model).__name__}: {clouds:4.0%} of the clouds are called "
            f"waterfalls, {missed:3.0%} of the waterfalls are missed (training error {errors:.1%})"
        )

# %%
# The scores of instances. Colours are the score of a place, lines where it is -1, 0 and 1; points
# are the instances of test bags. Where the mist fills the picture, the largest differences inside
# positive bags are those between waterfall and mist, and the constraint turns the weights that way.
# Where a bag is mostly background, the largest differences are those from the background, which
# waterfall and mist share. There the constraint changes nothing, or makes things worse.

ticks = np.linspace(-4.0, 12.0, 80)
places = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
alone = Bags(places, np.arange(len(places) + 1))
marks = {"background": "k.", "distractor": "bs", "key": "r^"}

fig, axes = plt.subplots(2, 2, figsize=(7.5, 7.5), layout="constrained", sharex=True, sharey=True)
for row, (setting, n_distractors) in zip(axes, SETTINGS.items(), strict=True):
    train, test = draw(n_distractors, 0, 0.0), draw(n_distractors, 100, 1.0)
    kinds = test.bags.instance_names
    for model, axis in zip(models(), row, strict=True):
        model.fit(train.bags, train.y)
        scores = model.decision_function(alone).reshape(80, 80)
        axis.pcolormesh(ticks, ticks, scores, cmap="RdBu_r", vmin=-4.0, vmax=4.0, alpha=0.4)
        axis.contour(ticks, ticks, scores, levels=[-1.0, 0.0, 1.0], colors="black", linewidths=1)
        for kind, mark in marks.items():
            axis.plot(*test.bags.instances[kinds == kind].T, mark, markersize=3, label=kind)
        of_kind = model.instance_decision_function(test.bags)
        means = ", ".join(f"{kind} {of_kind[kinds == kind].mean():+.1f}" for kind in marks)
        axis.set(title=f"{type(model).__name__}, {setting}", xlabel=f"mean scores: {means}")
        axis.xaxis.label.set_size(7)
axes[0, 0].legend(loc="upper right")
plt.show()

# %%
# So it helps if positive bags hold little beside key instances and distractors, and if some of them
# have no distractor. If all had both, nothing would say which of the two is the waterfall.
# ``spread=1`` switches the constraint off and belongs in every search.
