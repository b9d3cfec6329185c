"""Sessions that own others: drains, spreads and shuffles over several edges, and sessions between clusters.

A parent moves no subscriber itself. It creates children, one for each pair of edges, and sums up what they report.
"""
