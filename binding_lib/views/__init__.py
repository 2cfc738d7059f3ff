"""How a scene is shown: as a caption, as tokens, as a picture."""
