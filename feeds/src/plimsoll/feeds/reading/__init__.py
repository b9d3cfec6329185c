"""Reading a feed from its recorder, from anywhere: which requests to make, and a copy of the dataset that grows."""
