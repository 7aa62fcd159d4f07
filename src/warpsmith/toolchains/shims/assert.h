// NVRTC has no C library; this stands in for <assert.h>.
#pragma once
// assert is built in, except for NDEBUG.
#ifdef NDEBUG
#undef assert
#define assert(condition) static_cast<void>(0)
#endif
