"""PADRES 2006, section 6: local balancing (6a to 6h), accuracy (7a, 7b), balancing of clusters (8a to 8d)."""
