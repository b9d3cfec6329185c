"""What a run measures in the machines for the laws: the size of queues (I6), and state that is left over (I5)."""
