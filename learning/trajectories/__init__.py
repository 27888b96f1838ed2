"""Trajectories of partial matches as the native core logs them, and their match vectors."""
