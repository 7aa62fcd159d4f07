// NVRTC has no C library; this stands in for <stdio.h>.
#pragma once
#include <stddef.h>
// printf is built in.
