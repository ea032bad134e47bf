"""Images as half blocks, two pixels per cell.

bytes -> decoding (in a thread) -> Picture -> half_blocks, for a pane's size -> strips -> PictureScreen

Pillow is loaded when the first image is shown. Nothing is kept of an image that is not shown.
"""
