"""A text and a picture that disagree, and those who weigh them; observers with other priors."""
