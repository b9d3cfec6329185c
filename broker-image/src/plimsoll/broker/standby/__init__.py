"""A head with a standby as two processes: what waits for the standby, and the process that follows."""
