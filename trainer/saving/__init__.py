"""What outlives the process: checkpoints, the job's folders and curves, and storage that misbehaves."""
