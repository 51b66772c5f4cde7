"""CkNN-ROI: which instances make the nearest bags vote as they do."""

from typing import Any, ClassVar

from bagwise._arrays import Floats
from bagwise._compat import StrOptions
from bagwise.bags import Bags, segment_rows
from bagwise.base import BagTags, Summary, Target, documented
from bagwise.neighbors._citation_knn import CitationKNN


@documented
class CitationKNNROI(CitationKNN):
    r"""Citation-kNN that finds the region of interest: the instance that decides for a label.

    Bags are classified as by `CitationKNN`. An instance x is scored as the bag {x} would be by the
    distance ``"min"``: the training bags with the instances nearest to it vote, and those that it
    is as near to as their C-th nearest training bag. With :math:`v_i` from 0 to 2, the number of
    votes that training bag i has on x, and signs :math:`y_i = \pm 1` for a label,

    .. math::

        s(x) = \frac{1}{\sum_i v_i} \Big( \sum_i v_i y_i + \frac12 \,
               \frac{d_- - d_+}{d_- + d_+} \Big)

    where :math:`d_+` and :math:`d_-` are the distances from x to the nearest bag with the label and
    without. Where votes are equal, so the instance is the key instance that is, for its
    distance from bags without the label, nearest to one with it.

    Parameters
    ----------
    n_references : int
        R, the number of nearest training bags that vote, at least 1.
    n_citers : int
        C; a training bag votes if a bag is as near to it as its C-th nearest other one. With 0 only
        the nearest vote.
    |distance: of instances, metric|
        It may be a learner of metrics as well, such as ``MIMLCA()``, or another transformer of
        instances: the bags are transformed, and then compared by Euclidean distances. One that is
        fitted is used as it is, another one is fitted to the training bags. A clone is not fitted,
        so that in a cross-validation each fold learns a metric of its own.

    Attributes
    ----------
    bag_instances_ : ndarray or CSR matrix of shape (n_instances, n_features)
        The instances of the training bags, transformed if ``metric`` is a learner.
    bag_offsets_ : ndarray of int of shape (n_bags + 1,)
        Training bag ``i`` is ``bag_instances_[bag_offsets_[i]:bag_offsets_[i + 1]]``.
    radius_ : ndarray of shape (n_bags,)
        The distance from each training bag to its C-th nearest other one; infinite if there are
        fewer, and -1 without citers.
    instance_radius_ : ndarray of shape (n_bags,)
        The same by the distance ``"min"``, if ``distance`` is another one.
    label_columns_ : ndarray of int
        The outputs in which training bags are positive, bag after bag.
    label_offsets_ : ndarray of int of shape (n_bags + 1,)
        Where those of each bag begin and end.
    metric_ : estimator
        The fitted learner, if ``metric`` is one.
    |classes_, multilabel_|
    |result_: nothing, n_iter_: nothing, n_features_in_, feature_names_in_|

    See Also
    --------
    CitationKNN : The same for bags alone; it takes given distances too.

    Notes
    -----
    By the distance ``"max"`` an instance would be far from every bag that holds others besides,
    whether or not one of these is like it: so instances are scored by ``"min"``, however bags are
    compared.

    No implementation of [1]_ was at hand, and the formula of the scores is ours.

    References
    ----------
    .. [1] Z.-H. Zhou, X.-B. Xue, Y. Jiang: Locating regions of interest in CBIR with multi-instance
       learning techniques. Australian Joint Conference on Artificial Intelligence 2005.

    Examples
    --------
    >>> from bagwise.datasets import load_digit_bags
    >>> from bagwise.neighbors import CitationKNNROI
    >>> data = load_digit_bags()
    >>> model = CitationKNNROI(5, 5).fit(data.bags[:150], data.y[:150])
    >>> model.key_instances(data.bags[150:153]).shape
    (3,)
    """

    _summary: ClassVar[Summary] = Summary(
        assumption="bags near to each other have the same labels, and so have instances",
        objective="none",
        cost="distances of $N^2$ pairs",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CitationKNN._parameter_constraints,
        "distance": [StrOptions({"average", "min", "max"})],
    }

    def _learn(
        self, bags: Bags, target: Target, cost_weight: Floats, bag_weight: Floats
    ) -> dict[str, Any]:
        learned = super()._learn(bags, target, cost_weight, bag_weight)
        if self.distance != "min":
            kept = Bags(learned["bag_instances_"], learned["bag_offsets_"])
            learned["instance_radius_"] = self._radii_of(kept, "min")
        return learned

    def _instance_outputs(self, bags: Bags) -> Floats:
        instances, starts, stops = self._mapped(bags).segments
        rows = segment_rows(starts, stops)
        if hasattr(self, "instance_radius_"):
            return self._outputs(instances, rows, rows + 1, "min", self.instance_radius_)
        return self._outputs(instances, rows, rows + 1, self.distance, self.radius_)

    def __bagwise_tags__(self) -> BagTags:
        return BagTags(**self._distance_tags())
