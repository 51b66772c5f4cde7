"""General programmes: quadratic ones with cones, and cutting planes."""
