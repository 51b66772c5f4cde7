"""Rows known by their inner products: where solvers meet Gram matrices and features."""
