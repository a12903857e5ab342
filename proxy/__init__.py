"""Usher: an OpenAI-compatible gateway that takes tool schemas out of the prompt."""
