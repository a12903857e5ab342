"""The gates of `make check`: each takes the project's folder and returns what is wrong with it."""
