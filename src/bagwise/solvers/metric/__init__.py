"""Metrics learned from bags with lists of labels."""
