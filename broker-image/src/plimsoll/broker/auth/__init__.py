"""The check of each peer's messages: its role and name must be those that its key is authorised for."""
