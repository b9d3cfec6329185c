"""What is asked of a simulated fleet besides the laws: that queues stay bounded, and that it comes to rest."""
