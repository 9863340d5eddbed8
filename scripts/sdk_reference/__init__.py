"""Renders the public names of the SDKs, with their doc comments, as Markdown."""
