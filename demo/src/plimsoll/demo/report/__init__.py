"""The output of a demo run: a JSON report and HTML pages with charts, in one folder.

The keys of the report are an interface: others read them, so they keep their names.
"""
