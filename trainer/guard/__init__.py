"""NaN, out of memory, batches that are refused: found early, explained, and where asked for, got around."""
