"""The experiment of Tao, Poslad, Bigham 2013, section V: a burst, a deadline in danger, and the topic that moves."""
