"""
Find the 3
==========

Each bag is a handful of handwritten digits, and a bag is positive if there is a 3 inside. We learn
from the labels of bags only, and then ask which image of each bag decided. Nobody told the model
what a 3 looks like.
"""

# %%
# The images of the training bags and of the test bags are different ones. C is chosen by
# cross-validation inside the training bags.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV

from bagwise.datasets import load_digit_bags
from bagwise.svm import SIL, MIKernelSVM

train = load_digit_bags(200, target=3, images="train")
test = load_digit_bags(200, target=3, images="test")

grid = {"C": [0.01, 0.1, 1.0, 10.0, 100.0]}
models = {}
for estimator in (SIL(), MIKernelSVM()):
    search = GridSearchCV(estimator, grid, cv=5).fit(train.bags, train.y)
    models[type(estimator).__name__] = search.best_estimator_

# %%
# How many bags are labelled rightly, and how often is the key instance of a positive bag a 3?
# A blind choice would hit a 3 as often as there are 3s in positive bags.

bag_of_row = np.repeat(np.arange(len(test.bags)), test.bags.sizes)
blind = np.mean(test.instance_y[test.y[bag_of_row] == 1] == test.target)
print(f"blind choice: {blind:.2f} of key instances are a {test.target}")
for name, model in models.items():
    rows = test.bags.offsets[:-1] + model.key_instances(test.bags)
    hits = np.mean(test.instance_y[rows][test.y == 1] == test.target)
    accuracy = model.score(test.bags, test.y)
    print(f"{name} (C={model.C:g}): accuracy {accuracy:.2f}, key instances {hits:.2f}")

# %%
# Six test bags, from the surest positive to the surest negative. The colour of a frame is the score
# of the image; the key instance has the thick frame.

model = models["MIKernelSVM"]
bag_scores = model.decision_function(test.bags)
chosen = np.argsort(-bag_scores)[np.linspace(0, len(test.bags) - 1, 6).astype(int)]
shown = test.bags[chosen]
scores = np.split(model.instance_decision_function(shown), shown.offsets[1:-1])
keys = model.key_instances(shown)
limit = max(np.abs(score).max() for score in scores)
colors = plt.get_cmap("RdBu_r")

fig, axes = plt.subplots(len(shown), shown.sizes.max(), figsize=(8, 6.5), layout="constrained")
for row, bag in enumerate(shown):
    for column, axis in enumerate(axes[row]):
        axis.set(xticks=[], yticks=[])
        if column >= len(bag):
            axis.set_axis_off()
            continue
        axis.imshow(bag[column].reshape(8, 8), cmap="gray_r")
        axis.spines[:].set_color(colors(0.5 + 0.5 * scores[row][column] / limit))
        axis.spines[:].set_linewidth(6 if column == keys[row] else 2)
    truth = test.label_names[test.y[chosen[row]]]
    axes[row][0].set_ylabel(f"{truth}\n{bag_scores[chosen[row]]:+.2f}", rotation=0, labelpad=30)
fig.suptitle("Key instances (thick frames); red speaks for a 3, blue against")
plt.show()
