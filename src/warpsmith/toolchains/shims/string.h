// NVRTC has no C library; this stands in for <string.h>.
#pragma once
#include <stddef.h>
// memcpy and memset are built in.
