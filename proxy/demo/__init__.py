"""`usher demo`: the main job in one picture, offline."""
