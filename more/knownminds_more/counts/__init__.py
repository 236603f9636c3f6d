"""Counts of events and linked coins: texts that break off, who weighs them, and idle evidence."""
