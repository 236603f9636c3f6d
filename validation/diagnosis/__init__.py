"""The battery of coherence tests, its page and its audits."""
