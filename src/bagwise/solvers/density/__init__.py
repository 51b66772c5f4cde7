"""Points that are near to positive bags and far from negative ones."""
