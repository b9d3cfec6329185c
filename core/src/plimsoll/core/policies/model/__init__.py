"""The model that all policies share: loads, matching delays, traffic samples, profiles, pairs of brokers, and plans.

Values are frozen. A helper lives here once two policies use it; code that one policy needs stays in its own package.
"""
