"""Bags of lists, 3-D arrays, rows with bag ids, tables and Arrow columns."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike

from bagwise.bags import _build, _matrix


class FromOtherShapes:
    """Ways to make `Bags` of data in other shapes, all of which end in its constructor."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __init__(self, instances: Any, offsets: ArrayLike, **aligned: Any) -> None: ...

    @classmethod
    def from_list(cls, arrays: Sequence[Any], **aligned: Any) -> Self:
        """Make bags of a sequence of matrices, one a bag.

        Parameters
        ----------
        arrays : sequence of array-like or sparse matrix of shape (n_i, n_features)
            The bags. They are copied into one matrix; it is sparse if all of them are.
        **aligned
            ``bag_names``, ``labels``, ``instance_names``, ``instance_labels``,
            ``feature_names``, ``label_names``, ``allow_nan`` as for `Bags`.

        Examples
        --------
        >>> from bagwise import Bags
        >>> Bags.from_list([[[0.0, 1.0]], [[2.0, 3.0], [4.0, 5.0]]]).sizes
        array([1, 2])
        """
        instances, offsets = _build.stack_list(arrays)
        return cls(instances, offsets, **aligned)

    @classmethod
    def from_array(cls, array: ArrayLike, **aligned: Any) -> Self:
        """Make bags of equal size from a 3-D array (bags x instances x features).

        Examples
        --------
        >>> from bagwise import Bags
        >>> Bags.from_array([[[0.0, 1.0]] * 3] * 4).shape
        (4, 2)
        """
        instances, offsets = _build.flatten_array(array)
        return cls(instances, offsets, **aligned)

    @classmethod
    def from_groups(
        cls,
        instances: Any,
        bag_ids: ArrayLike,
        *,
        labels: ArrayLike | None = None,
        instance_names: ArrayLike | None = None,
        instance_labels: ArrayLike | None = None,
        feature_names: ArrayLike | None = None,
        label_names: ArrayLike | None = None,
        allow_nan: bool = False,
    ) -> Self:
        """Make bags of a matrix and the bag that each of its rows belongs to.

        Bags come in the order in which their ids first appear and are named by them; rows keep
        their order inside a bag. Rows that already stand bag by bag are not copied.

        Parameters
        ----------
        instances : array-like or sparse matrix of shape (n_instances, n_features)
            The instances, in any order.
        bag_ids : array-like of shape (n_instances,)
            Which bag each row belongs to: numbers or strings.
        labels : array-like of shape (n_instances,) or (n_instances, n_labels), optional
            The label of its bag, on every row, as tables have it; it must not vary inside a bag.
        instance_names, instance_labels : array-like of shape (n_instances,), optional
            In the order of the rows given.
        feature_names : array-like of str of shape (n_features,), optional
            Names of the columns.
        label_names : array-like of str of shape (n_labels,), optional
            Names of the columns of ``labels``, if it is a matrix.
        allow_nan : bool
            Whether values may be missing, as for `Bags`.

        Examples
        --------
        >>> from bagwise import Bags
        >>> bags = Bags.from_groups([[0.0], [1.0], [2.0]], ["b", "a", "b"], labels=[1, 0, 1])
        >>> bags.bag_names, bags.labels
        (array(['b', 'a'], dtype='<U1'), array([1, 0]))
        """
        base = _matrix.as_matrix(instances)
        groups = _build.group_rows(bag_ids, base.shape[0])
        return cls(
            base if groups.order is None else _matrix.take_rows(base, groups.order),
            groups.offsets,
            bag_names=groups.names,
            labels=groups.once_per_bag("labels", labels),
            instance_names=groups.reorder("instance_names", instance_names),
            instance_labels=groups.reorder("instance_labels", instance_labels),
            feature_names=feature_names,
            label_names=label_names,
            allow_nan=allow_nan,
        )

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        bag: str = "bag",
        label: str | Sequence[str] | None = None,
        features: Sequence[str] | None = None,
        instance_name: str | None = None,
        instance_label: str | None = None,
        on_missing_label: str = "error",
        allow_nan: bool = False,
    ) -> Self:
        """Make bags of a long table: one row an instance, one column that names its bag.

        Parameters
        ----------
        frame : pandas.DataFrame, polars.DataFrame or pyarrow.Table
            The table.
        bag : str
            Column with the bag of each row.
        label : str or sequence of str, optional
            Column with the label of the row's bag (several: one 0/1 column a label), kept as
            `labels`.
        features : sequence of str, optional
            Columns with the features. Default: all columns not named otherwise.
        instance_name, instance_label : str, optional
            Columns with the names and labels of the instances.
        on_missing_label : {"error", "drop"}
            Whether bags without a label (None, NaN, null) are refused or left out.
        allow_nan : bool
            Whether features may be missing, as for `Bags`.

        Examples
        --------
        >>> import pandas as pd
        >>> from bagwise import Bags
        >>> frame = pd.DataFrame({"bag": ["a", "a", "b"], "x": [0.0, 1.0, 2.0], "y": [1, 1, 0]})
        >>> bags = Bags.from_frame(frame, label="y")
        >>> bags.labels, bags.feature_names
        (array([1, 0]), array(['x'], dtype='<U1'))
        """
        from bagwise.bags._frames import FrameColumns, is_several

        columns = FrameColumns(frame).labelled(bag, label, on_missing_label)
        bag_ids = columns.column(bag)  # before the features: a wrong name shows here
        labels, names, marks = map(columns.values, (label, instance_name, instance_label))
        if features is None:
            features = columns.others(bag, label, instance_name, instance_label)
        return cls.from_groups(
            columns.matrix(features),
            bag_ids,
            labels=labels,
            instance_names=names,
            instance_labels=marks,
            feature_names=list(features),
            label_names=list(label) if label is not None and is_several(label) else None,
            allow_nan=allow_nan,
        )

    @classmethod
    def from_arrow(cls, column: Any, **aligned: Any) -> Self:
        """Make bags of an Arrow list column: one list of fixed-length vectors a bag; no copy.

        Parameters
        ----------
        column : pyarrow array, chunked array, awkward array, or any object with an Arrow interface
            Of type list (or large list) of fixed-size lists (or of equally long lists) of float32
            or float64. A column in one chunk is not copied, unless features are null: these are
            NaN then, if ``allow_nan`` is True.
        **aligned
            ``bag_names``, ``labels`` and so on, as for `Bags`.
        """
        from bagwise.bags._frames import unwrap_arrow

        instances, offsets = unwrap_arrow(column, allow_nan=bool(aligned.get("allow_nan")))
        return cls(instances, offsets, **aligned)
