"""Load reports become data: collectors check, deduplicate, stamp, store and serve them, and their aggregates.

The schema that is shared with the jobs lives here, and so does the fold that stands in for them. Nothing here plans or
moves anything, and a fleet runs the same without it.
"""
