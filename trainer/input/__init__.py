"""The input around data.py: records, their decoding, and which examples each step sees."""
