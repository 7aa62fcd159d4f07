// What kernels print: gathered, and handed on by a thread's own stack (a callback may need more than a fiber has).
#pragma once
#include <string>

#include "state.h"

namespace ws {

// Output of one call, in one piece.  On a fiber.
void print(Worker& k, const std::string& text);
void flush_output();

}  // namespace ws
