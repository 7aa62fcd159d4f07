// A program in two halves: C++ compiled by the host compiler...
#include "vector_ops.h"

#include <cmath>
#include <iostream>
#include <stdexcept>

int main() try {
  std::vector<double> a(1000), b(1000);
  for (size_t i = 0; i < a.size(); ++i) a[i] = 0.25 * i, b[i] = 500.0 - i;
  auto sum = ops::apply(ops::Op::add, a, b), difference = ops::apply(ops::Op::subtract, a, b), product = ops::apply(ops::Op::multiply, a, b);
  for (size_t i = 0; i < a.size(); ++i)
    if (sum[i] != a[i] + b[i] || difference[i] != a[i] - b[i] || product[i] != a[i] * b[i]) throw std::logic_error("element " + std::to_string(i));
  double want = 0;
  for (double p : product) want += p;
  if (std::abs(ops::dot(a, b) - want) > 1e-6) throw std::logic_error("dot");
  try {
    ops::apply(ops::Op::add, a, {1.0});
    throw std::logic_error("sizes differ, and nobody cares");
  } catch (const std::invalid_argument&) {
  }
  std::cout << (ops::launches() == 5 ? "PASS" : "FAIL: launches") << std::endl;
} catch (const std::exception& e) {
  std::cout << "FAIL: " << e.what() << std::endl;
  return 1;
}
