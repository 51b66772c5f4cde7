"""Clusters: maximum margins of bags and of instances, k-means, k-medoids."""
