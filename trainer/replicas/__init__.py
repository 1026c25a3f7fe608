"""The replicas of a job: who is here, whether the others still are, and being told to stop."""
