"""Requests that wait for a served model: the batcher's rules, and replays without a clock."""
