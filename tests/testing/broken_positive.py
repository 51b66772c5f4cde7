"""Estimators that are wrong about the positive class, or about how little they learned."""

import warnings

from bagwise.bags import segment_argmax, segment_max
from bagwise.base import BagTags
from bagwise.exceptions import ConstantModelWarning, PositiveClassWarning
from testing.broken import Broken
from testing.sound import NearestMean

BROKEN = Broken()
caught_by = BROKEN.caught_by


@caught_by("check_asymmetry", rule="max")
class HidesAsymmetry(NearestMean):
    def __bagwise_tags__(self):
        return BagTags(max_rule=True)


@caught_by("check_asymmetry", rule="mean")
class ClaimsAsymmetry(NearestMean):
    def __bagwise_tags__(self):
        return BagTags(asymmetric=True)


@caught_by("check_positive_class", rule="max")
class TakesTheMaximumAlways(NearestMean):
    def _bag_outputs(self, bags):
        return segment_max(self._instance_outputs(bags), bags.offsets[:-1], bags.offsets[1:])


@caught_by("check_positive_class", rule="max")
class PointsAtTheSecondClass(NearestMean):
    def _key_places(self, bags):
        scores = self._instance_outputs(bags)[:, 0]
        return segment_argmax(scores, bags.offsets[:-1], bags.offsets[1:])


@caught_by("check_positive_class", rule="max")
class ForgetsTheParameter(NearestMean):
    def _positive_place(self, target):
        return 1 if len(target.classes) == 2 else None


@caught_by("check_pos_label_refused", rule="max")
class GuessesWhatWasMeant(NearestMean):
    def _positive_place(self, target):
        try:
            return super()._positive_place(target)
        except ValueError:
            return 1


@caught_by("check_guessed_class_warns", rule="max")
class GuessesSilently(NearestMean):
    def _positive_place(self, target):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PositiveClassWarning)
            return super()._positive_place(target)


@caught_by("check_guessed_class_warns", rule="max", error=PositiveClassWarning)
class DoubtsConventions(NearestMean):
    def _positive_place(self, target):
        negative, positive = target.classes
        text = f"{positive} is positive unless pos_label={negative}."
        warnings.warn(text, PositiveClassWarning, stacklevel=2)
        return super()._positive_place(target)


@caught_by("check_constant_model_warns")
class IsConstantSilently(NearestMean):
    def _review(self, *task):
        """Say nothing."""


@caught_by("check_constant_model_warns", error=ConstantModelWarning)
class CallsEveryModelConstant(NearestMean):
    def _review(self, *task):
        text = f"{type(self).__name__} is constant."
        warnings.warn(text, ConstantModelWarning, stacklevel=2)
