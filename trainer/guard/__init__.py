"""NaN and out of memory: found early, explained, and where asked for, got around."""
