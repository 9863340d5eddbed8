"""Pages with live queries, for example ideas that people vote on, in several windows."""
