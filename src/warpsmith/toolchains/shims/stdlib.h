// NVRTC has no C library; this stands in for <stdlib.h>.
#pragma once
#include <stddef.h>
// malloc and free are built in.
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
