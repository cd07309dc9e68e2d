"""Answers about reports for agents: bounded in size, each with the query and link that prove it."""
