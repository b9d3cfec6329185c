"""What the pages of reports share: charts as SVG, and one style for light and dark.

A page is one HTML file that refers to nothing outside. This package knows values and text only, and writes no file.
"""
