#pragma once
#include <cstddef>
#include <vector>

// No CUDA in here: what the C++ half of the program sees.
namespace ops {
enum class Op { add, subtract, multiply };
std::vector<double> apply(Op op, const std::vector<double>& a, const std::vector<double>& b);
double dot(const std::vector<double>& a, const std::vector<double>& b);
extern "C" int launches();
}  // namespace ops
