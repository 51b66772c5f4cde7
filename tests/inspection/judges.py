"""Stand-ins for fitted classifiers, whose scores are plain to see."""

import numpy as np

from bagwise.bags import segment_argmax, segment_max


class FirstFeature:
    """The score of an instance is its first feature, that of a bag the largest of them."""

    classes_ = np.array([0, 1])
    multilabel_ = False

    def instance_decision_function(self, bags):
        return np.asarray(bags.instances[:, 0])

    def decision_function(self, bags):
        return segment_max(self.instance_decision_function(bags), *ends(bags))

    def key_instances(self, bags):
        return segment_argmax(self.instance_decision_function(bags), *ends(bags))

    def predict(self, bags):
        return self.classes_[(self.decision_function(bags) > 0).astype(int)]


class BothSides(FirstFeature):
    """As `FirstFeature`, but in negative bags the smallest score decides, as in sums of scores."""

    def key_instances(self, bags):
        side = np.repeat(np.where(self.decision_function(bags) > 0, 1, -1), bags.sizes)
        return segment_argmax(side * self.instance_decision_function(bags), *ends(bags))


class BagsOnly(FirstFeature):
    """Has no scores of instances."""

    def instance_decision_function(self, bags):
        msg = "scores bags only"
        raise AttributeError(msg)

    def decision_function(self, bags):
        return FirstFeature().decision_function(bags)


class ThreeClasses:
    """The features are the scores of the three classes."""

    classes_ = np.array(["ant", "bee", "cat"])
    multilabel_ = False

    def instance_decision_function(self, bags):
        return np.asarray(bags.instances)

    def decision_function(self, bags):
        return segment_max(self.instance_decision_function(bags), *ends(bags))

    def key_instances(self, bags):
        column = np.repeat(self.decision_function(bags).argmax(axis=1), bags.sizes)
        scores = self.instance_decision_function(bags)[np.arange(len(column)), column]
        return segment_argmax(scores, *ends(bags))

    def predict(self, bags):
        return self.classes_[self.decision_function(bags).argmax(axis=1)]


class LabelLists(ThreeClasses):
    """The features are the scores of three labels, of which a bag has those above 0."""

    classes_ = np.arange(3)
    multilabel_ = True

    def key_instances(self, bags):
        return segment_argmax(self.instance_decision_function(bags), *ends(bags))

    def predict(self, bags):
        return (self.decision_function(bags) > 0).astype(int)


def ends(bags):
    return bags.offsets[:-1], bags.offsets[1:]
