"""The CUDA runtime API for whole programs on the emulator.

The C++ files of this folder become ``libwarpsmith_cudart.so``, against which programs are linked instead
of NVIDIA's ``libcudart``.  It finds the program's device code in the fat binaries that nvcc puts into it
(``fatbin.py`` reads them) and asks the compile service (``devices/emulator/service.py``) for native code.
"""
