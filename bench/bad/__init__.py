"""The stages of BAD on a fleet of the size that its simulation has."""
