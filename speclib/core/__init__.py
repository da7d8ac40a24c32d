"""Tokens and chance: what every method, world and model is built on.

Knows neither time nor devices.
"""
