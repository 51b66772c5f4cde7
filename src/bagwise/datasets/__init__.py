"""Data to learn from."""

from bagwise.datasets._clusters import make_cluster_bags
from bagwise.datasets._dataset import BagDataset
from bagwise.datasets._digits import load_digit_bags
from bagwise.datasets._fetch import cache_folder, fetch
from bagwise.datasets._key_instances import make_key_instance_bags
from bagwise.datasets._registry import DatasetInfo, available, info
from bagwise.datasets._rings import make_ring_bags, make_three_class_bags
from bagwise.datasets._weak_labels import make_weak_label_bags

__all__ = [
    "BagDataset",
    "DatasetInfo",
    "available",
    "cache_folder",
    "fetch",
    "info",
    "load_digit_bags",
    "make_cluster_bags",
    "make_key_instance_bags",
    "make_ring_bags",
    "make_three_class_bags",
    "make_weak_label_bags",
]
