"""What Usher costs, measured beside its peers: `make bench`."""
