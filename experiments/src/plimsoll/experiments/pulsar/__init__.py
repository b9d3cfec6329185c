"""Bundles of topics: rounds of lookup, splitting and shedding, counted exactly, under the product's own policies."""
