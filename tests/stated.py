"""Whether a number in a sentence is the one that was computed."""


def agrees(text, value):
    """Whether a number, as it is written ("0.52", "84.96%", "1,200"), is a value rounded so."""
    bare = text.rstrip("%").replace(",", "")
    digits = len(bare.partition(".")[2])
    scale = 100 if text.endswith("%") else 1
    return abs(float(bare) - scale * value) <= 0.5 * 10**-digits + 1e-9
