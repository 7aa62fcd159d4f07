// options: -std=c++17 -extended-lambda
// Thrust: vectors, sort by key, reductions, scans, unique, transformations with lambdas, and iterators that count and zip.
#include <thrust/device_vector.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
#include <thrust/tuple.h>
#include <thrust/unique.h>

#include <iostream>

int main() {
  const int n = 5000;
  thrust::host_vector<int> h(n);
  for (int i = 0; i < n; ++i) h[i] = i * 7919 % n;
  thrust::device_vector<int> keys = h, values(n);
  thrust::sequence(values.begin(), values.end());
  thrust::sort_by_key(keys.begin(), keys.end(), values.begin());
  bool good = true;
  for (int i = 0; i < n; i += 97) good &= keys[i] == i && h[values[i]] == i;
  std::cout << "sort_by_key " << good << "\n";

  std::cout << "reduce " << thrust::reduce(keys.begin(), keys.end(), 0, thrust::plus<int>()) << "\n";
  long long squares = thrust::transform_reduce(
      thrust::counting_iterator<long long>(1), thrust::counting_iterator<long long>(1001), [] __host__ __device__(long long i) { return i * i; }, 0LL,
      thrust::plus<long long>());
  std::cout << "squares " << squares << "\n";

  thrust::transform(keys.begin(), keys.end(), keys.begin(), [] __device__(int k) { return k / 50; });
  auto end = thrust::unique(keys.begin(), keys.end());
  std::cout << "unique " << end - keys.begin() << ", the last is " << *(end - 1) << "\n";
  thrust::exclusive_scan(keys.begin(), end, keys.begin());
  std::cout << "scan " << keys[1] << " " << keys[99] << "\n";

  thrust::device_vector<float> x(1000), y(1000), z(1000);
  thrust::sequence(x.begin(), x.end());
  thrust::sequence(y.begin(), y.end(), 1000.0f, -1.0f);
  auto first = thrust::make_zip_iterator(thrust::make_tuple(x.begin(), y.begin()));
  thrust::transform(first, first + 1000, z.begin(), [] __device__(const thrust::tuple<float, float>& t) { return thrust::get<0>(t) * 2 + thrust::get<1>(t); });
  std::cout << "zip " << z[0] << " " << z[999] << "\n";
  return 0;
}
