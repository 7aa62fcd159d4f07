// NVRTC has no C library; this stands in for <stdbool.h>.
#pragma once
// bool, true and false belong to C++.
