"""Sums of weak learners that are found one by one."""
