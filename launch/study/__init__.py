"""Tuning studies on this machine: `launch tune` runs one, `launch refine` writes the next.

space reads the parameters, search proposes trials (optuna), trial runs one with launch/local, measurements reads
what it reports, stopping ends those that fall behind, store keeps it all, table and plots show it.
"""
