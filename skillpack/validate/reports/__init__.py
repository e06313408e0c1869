"""The forms that a validation's outcome is given out in."""
