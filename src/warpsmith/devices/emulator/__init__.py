"""The emulated GPU: PTX compiled to this machine's SIMD code (see compiler.py) and run by a native runtime."""
