"""What a motion is to be."""
