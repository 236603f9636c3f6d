"""What asking language models costs, what they are connected by, and how a run is reported."""
