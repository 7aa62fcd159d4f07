"""Golden data: what a real GPU computes for every instruction form that the emulator has.

``operands`` makes the inputs from a seed, ``forms`` and ``families/`` are the table of instructions,
``kernels`` writes them as PTX, ``record`` runs that on a GPU and freezes the results with ``store``
under tests/golden/, ``emulated`` runs the same text on the emulator, ``accuracy`` compares the two and
``report`` writes docs/accuracy.md.
``record`` needs Python, numpy and NVIDIA's driver only, nothing of warpsmith.
"""
