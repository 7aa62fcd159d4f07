// Virtual functions on the device: objects made by a kernel with new, an abstract base, multiple inheritance, a virtual
// destructor, and pure computation through the table of pointers.
#include <cstdio>
#include <cstdlib>

class Shape {
 public:
  __device__ virtual ~Shape() {}
  __device__ virtual double area() const = 0;
  __device__ virtual void scale(double by) = 0;
  __device__ virtual int corners() const { return 0; }
};

class Named {
 public:
  __device__ explicit Named(char initial) : initial_(initial) {}
  __device__ virtual char initial() const { return initial_; }

 protected:
  char initial_;
};

__device__ int destroyed;

class Circle final : public Shape {
 public:
  __device__ explicit Circle(double r) : r_(r) {}
  __device__ ~Circle() override { atomicAdd(&destroyed, 1); }
  __device__ double area() const override { return 3.0 * r_ * r_; }  // an engineer's pi: exact sums
  __device__ void scale(double by) override { r_ *= by; }

 private:
  double r_;
};

class Rectangle : public Shape, public Named {
 public:
  __device__ Rectangle(double a, double b, char name = 'r') : Named(name), a_(a), b_(b) {}
  __device__ ~Rectangle() override { atomicAdd(&destroyed, 100); }
  __device__ double area() const override { return a_ * b_; }
  __device__ void scale(double by) override { a_ *= by, b_ *= by; }
  __device__ int corners() const override { return 4; }

 protected:
  double a_, b_;
};

class Square : public Rectangle {
 public:
  __device__ explicit Square(double a) : Rectangle(a, a, 's') {}
  __device__ void scale(double by) override {
    Rectangle::scale(by);
    initial_ = 'S';
  }
  __device__ char initial() const override { return initial_ == 'S' ? '!' : initial_; }
};

__global__ void make(Shape** shapes, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  switch (i % 3) {
    case 0: shapes[i] = new Circle(i); break;
    case 1: shapes[i] = new Rectangle(i, 2); break;
    default: shapes[i] = new Square(i);
  }
}

__global__ void measure(Shape** shapes, int n, double* areas, int* corners) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  shapes[i]->scale(i % 2 ? 2.0 : 0.5);
  areas[i] = shapes[i]->area();
  atomicAdd(corners, shapes[i]->corners());
}

__global__ void initials(Shape** shapes, char* out) {
  int i = threadIdx.x;
  if (i % 3) {
    const Named* named = static_cast<Rectangle*>(shapes[i]);  // another table at another offset
    out[i] = named->initial();
  } else {
    out[i] = 'c';
  }
}

__global__ void destroy(Shape** shapes, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) delete shapes[i];
}

int main() {
  const int n = 300;
  Shape** shapes;
  double *d_areas, areas[n];
  int *d_corners, corners, gone;
  char *d_initials, letters[9];
  cudaMalloc(&shapes, n * sizeof(Shape*));
  cudaMalloc(&d_areas, sizeof areas);
  cudaMalloc(&d_corners, sizeof corners);
  cudaMalloc(&d_initials, sizeof letters);
  cudaMemset(d_corners, 0, sizeof corners);
  make<<<3, 128>>>(shapes, n);
  measure<<<3, 128>>>(shapes, n, d_areas, d_corners);
  initials<<<1, 9>>>(shapes, d_initials);
  destroy<<<3, 128>>>(shapes, n);
  cudaMemcpy(areas, d_areas, sizeof areas, cudaMemcpyDeviceToHost);
  cudaMemcpy(&corners, d_corners, sizeof corners, cudaMemcpyDeviceToHost);
  cudaMemcpy(letters, d_initials, sizeof letters, cudaMemcpyDeviceToHost);
  cudaMemcpyFromSymbol(&gone, destroyed, sizeof gone);
  if (cudaError_t e = cudaGetLastError()) return printf("FAIL: %s\n", cudaGetErrorString(e)), 1;
  for (int i = 0; i < n; i++) {
    double s = i % 2 ? 2.0 : 0.5, want = s * s * (i % 3 == 0 ? 3.0 * i * i : i % 3 == 1 ? 2.0 * i : double(i) * i);
    if (areas[i] != want) return printf("FAIL: area %d is %f, not %f\n", i, areas[i], want), 1;
  }
  bool good = corners == 800 && gone == 100 + 200 * 100;
  for (int i = 0; i < 9; i++) good &= letters[i] == "cr!"[i % 3];
  printf("%s\n", good ? "PASS" : "FAIL");
  return !good;
}
